"""What kernels cannot say in Python: signals between threads, prefetches, borrowed arrays.

Threads that share a kernel's work wait for each other by :func:`wait_for`, which spins and, after
some time, gives its core away. What they hand over they :func:`publish`.

Numba counts the references to an array: every row that a kernel takes of it costs two atomic
operations, a fifth of a visit to an example of few classes. :func:`borrowed` gives the same array
without a count.
"""

import time
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from shortlist._blas import Call
from shortlist._jit import DISABLED, njit, overloaded

# Rounds of a waiting loop before the thread offers its core to others: about a tenth of a
# millisecond. On a busy machine the thread that is waited for may need this core.
SPINS_BEFORE_YIELDING = 200_000
# After so many yields (half a microsecond each on an idle machine) the thread sleeps for
# SLEEP_MICROSECONDS. A sleeping core wakes late, so a block of visits (half a millisecond) should
# be over before.
YIELDS_BEFORE_SLEEP = 5_000
SLEEP_MICROSECONDS = 50
# Bytes that a processor fetches at once.
CACHE_LINE = 64
# Numbers between the signals of two threads: each has a cache line.
SIGNAL_STRIDE = CACHE_LINE // 8


@intrinsic
def _offer_core(typingctx: Any, blas: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        call = Call(context, builder, signature, values)
        return call.run(call.address("offer_core"), [])

    return types.void(blas), codegen


@intrinsic
def _sleep(typingctx: Any, blas: Any, microseconds: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        call = Call(context, builder, signature, values)
        return call.run(call.address("sleep"), [builder.trunc(values[1], ir.IntType(32))])

    return types.void(blas, types.int64), codegen


def _place_of(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    """Where an entry of an array of signals lies: the first two arguments."""
    array = context.make_array(signature.args[0])(context, builder, values[0])
    return builder.gep(array.data, [values[1]])


@intrinsic
def _load_signal(typingctx: Any, signals: Any, place: Any) -> Any:
    """The int64 at a place, as other threads last wrote it."""

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.load_atomic(_place_of(context, builder, signature, values), "acquire", 8)

    return types.int64(signals, types.int64), codegen


@intrinsic
def _store_signal(typingctx: Any, signals: Any, place: Any, value: Any) -> Any:
    """Write an int64 so that other threads see it, and all that was written before it."""

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        place = _place_of(context, builder, signature, values)
        builder.store_atomic(values[2], place, "release", 8)
        return context.get_dummy_value()

    return types.void(signals, types.int64, types.int64), codegen


@intrinsic
def _stream(typingctx: Any, source: Any, target: Any, word: Any) -> Any:
    """Copy eight bytes from array to array, around the caches."""

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        number = ir.IntType(64)
        places = []
        for kind, value in zip(signature.args[:2], values[:2], strict=True):
            array = context.make_array(kind)(context, builder, value)
            words = builder.bitcast(array.data, number.as_pointer())
            places.append(builder.gep(words, [values[2]]))
        store = builder.store(builder.load(places[0], align=4), places[1], align=4)
        once = builder.module.add_metadata([ir.Constant(ir.IntType(32), 1)])
        store.set_metadata("nontemporal", once)
        return context.get_dummy_value()

    return types.void(source, target, types.int64), codegen


@intrinsic
def _finish_streams(typingctx: Any) -> Any:
    """Wait until all that was written around the caches is where other threads see it."""

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), codegen


@intrinsic
def _prefetch(typingctx: Any, array: Any, row: Any, byte: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, values[0])
        word, short = ir.IntType(64), ir.IntType(32)
        offset = builder.mul(values[1], builder.extract_value(array.strides, 0))
        place = builder.ptrtoint(array.data, word)
        place = builder.add(place, builder.add(offset, values[2]))
        pointer = builder.inttoptr(place, ir.IntType(8).as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [pointer.type, short, short, short])
        function = builder.module.declare_intrinsic("llvm.prefetch", [pointer.type], kind)
        # To be read, and kept in all caches; data.
        builder.call(function, [pointer, *(ir.Constant(short, n) for n in (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64), codegen


def _without_count(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """An array, or each array of a tuple, whose references are not counted."""
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value=value)
        array.meminfo = ir.Constant(array.meminfo.type, None)
        array.parent = ir.Constant(array.parent.type, None)
        return array._getvalue()
    if isinstance(kind, types.BaseTuple):
        for place, part in enumerate(kind.types):
            own = builder.extract_value(value, place)
            own = _without_count(context, builder, part, own)
            value = builder.insert_value(value, own, place)
    return value


@intrinsic
def _borrow(typingctx: Any, arrays: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return _without_count(context, builder, signature.args[0], values[0])

    return arrays(arrays), codegen


@intrinsic
def _use(typingctx: Any, array: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return context.get_dummy_value()

    return types.void(array), codegen


@njit
def _publish(source, target):
    words = source.size * source.itemsize // 8
    for word in range(words):
        _stream(source, target, word)
    if words * 8 < source.size * source.itemsize:
        target[-1, -1] = source[-1, -1]
    _finish_streams()


@njit
def _pause(blas, rounds):
    """What a thread does after so many rounds of waiting."""
    if rounds > SPINS_BEFORE_YIELDING + YIELDS_BEFORE_SLEEP:
        _sleep(blas, SLEEP_MICROSECONDS)
    elif rounds > SPINS_BEFORE_YIELDING:
        _offer_core(blas)


@njit
def _wait_for(blas, signals, place, value):
    rounds = 0
    while _load_signal(signals, place) < value:
        rounds += 1
        _pause(blas, rounds)


@njit
def _wait_for_all(blas, signals, line, value):
    last = signals.shape[0] - line
    rounds = 0
    for place in range(0, last, line):
        while _load_signal(signals, place) < value:
            if _load_signal(signals, last) != 0:
                return False
            rounds += 1
            _pause(blas, rounds)
    return True


@njit
def _meet(blas, signals, thread, threads, turn):
    _store_signal(signals, thread * SIGNAL_STRIDE, turn)
    for other in range(threads):
        _wait_for(blas, signals, other * SIGNAL_STRIDE, turn)


if DISABLED:
    # Kernels run as plain Python: no thread waits for another.

    def wait_for(blas, signals, place, value):
        if signals[place] < value:
            raise RuntimeError("kernels without compilation run on one thread")

    def wait_for_all(blas, signals, line, value):
        while (signals[:-line:line] < value).any():
            if signals[-line] != 0:
                return False
            time.sleep(1e-6 * SLEEP_MICROSECONDS)
        return True

    def announce(signals, place, value):
        signals[place] = value

    def meet(blas, signals, thread, threads, turn):
        if threads > 1:
            raise RuntimeError("kernels without compilation run on one thread")

    def publish(source, target):
        target[:] = source

    def prefetch(array, row, size):
        pass

    def borrowed(arrays):
        return arrays

    def keep(array):
        pass

else:

    @njit
    def wait_for(blas, signals, place, value):
        """Return when another thread has announced at least ``value`` at this place."""
        _wait_for(blas, signals, place, value)

    @njit
    def wait_for_all(blas, signals, line, value):
        """Wait until at least ``value`` is announced at every place, ``line`` numbers apart.

        The last place is another: a number there ends the wait. Returns whether there was none.
        """
        return _wait_for_all(blas, signals, line, value)

    @njit
    def announce(signals, place, value):
        """Let other threads see ``value`` here, and all that this thread wrote before."""
        _store_signal(signals, place, value)

    @overloaded(apart=True)
    def meet(blas, signals, thread, threads, turn):
        """Wait until all threads are here, and see what they wrote before.

        ``turn`` is positive and rises from meeting to meeting. A thread has the number at
        ``thread`` times SIGNAL_STRIDE for itself.
        """
        return _meet

    @njit
    def publish(source, target):
        """target = source, both contiguous, for other threads to read after the next announcement.

        Written around the caches: a cache has to ask all others before it changes what they have
        read. Where cores share no cache, 900 lines took 24 microseconds, and take 2 this way.
        """
        _publish(source, target)

    @njit
    def prefetch(array, row, size):
        """Let the processor fetch the first ``size`` bytes of a row; the kernel does not wait."""
        for byte in range(0, size, CACHE_LINE):
            _prefetch(array, row, byte)

    @njit
    def borrowed(arrays):
        """The same array, or tuple with arrays, whose references are not counted.

        The caller keeps the arrays alive: those it was given are, its own are up to a later
        :func:`keep`.
        """
        return _borrow(arrays)

    @njit
    def keep(array):
        """An array of the caller's is alive up to here."""
        _use(array)

"use strict";
(() => {
  const root = document.documentElement;
  document.getElementById("theme").addEventListener("click", () => {
    const dark = root.dataset.theme
      ? root.dataset.theme === "dark"
      : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });

  const numbers = (text) => (text ? text.split(" ").map(Number) : []);

  for (const panel of document.querySelectorAll(".panel")) {
    const chart = panel.querySelector(".chart");
    const tip = panel.querySelector(".tip");
    const cursor = chart.querySelector(".cursor");
    const curves = [...chart.querySelectorAll(".series")].map((element) => ({
      element,
      name: element.dataset.name,
      px: numbers(element.dataset.px),
      py: numbers(element.dataset.py),
      x: element.dataset.x.split(" "),
      y: element.dataset.y.split(" "),
    }));

    const pick = (curve) => {
      chart.classList.toggle("picking", Boolean(curve));
      for (const other of curves) other.element.classList.toggle("picked", other === curve);
    };

    for (const button of panel.querySelectorAll(".legend button")) {
      const curve = curves[Number(button.dataset.series)];
      button.addEventListener("click", () => {
        const hidden = curve.element.classList.toggle("off");
        button.setAttribute("aria-pressed", String(!hidden));
        pick(null);
      });
      button.addEventListener("pointerenter", () => pick(curve));
      button.addEventListener("pointerleave", () => pick(null));
    }

    const leave = () => {
      tip.hidden = true;
      cursor.setAttribute("visibility", "hidden");
    };

    chart.addEventListener("pointermove", (event) => {
      const box = chart.getBoundingClientRect();
      const scale = chart.viewBox.baseVal.width / box.width;
      const at = [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
      let best = null;
      for (const curve of curves) {
        if (curve.element.classList.contains("off")) continue;
        for (let i = 0; i < curve.px.length; i++) {
          const distance = Math.hypot(curve.px[i] - at[0], curve.py[i] - at[1]);
          if (!best || distance < best.distance) best = { curve, i, distance };
        }
      }
      if (!best || best.distance > 60) return leave();
      const { curve, i } = best;
      cursor.setAttribute("cx", curve.px[i]);
      cursor.setAttribute("cy", curve.py[i]);
      cursor.setAttribute("visibility", "visible");
      tip.textContent = `${curve.name}: (${curve.x[i]}, ${curve.y[i]})`;
      tip.hidden = false;
      const left = curve.px[i] / scale;
      const half = tip.offsetWidth / 2;
      const middle = Math.min(Math.max(left, half), box.width - half);
      const above = curve.py[i] / scale - tip.offsetHeight - 10;
      tip.style.transform = `translate(${middle - half}px, ${Math.max(above, 0)}px)`;
    });
    chart.addEventListener("pointerleave", leave);
  }
})();

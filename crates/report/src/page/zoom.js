// Shows a frame of a flame graph, and what is in it, in the full width. A click on the same frame shows all again.
for (const graph of document.querySelectorAll('svg.flame')) {
  const frames = [...graph.querySelectorAll('svg')];
  const places = frames.map((frame) => ['x', 'width', 'y'].map((name) => parseFloat(frame.getAttribute(name))));
  let shown = 0;
  graph.addEventListener('click', (event) => {
    const clicked = Math.max(0, frames.indexOf(event.target.closest('svg.flame svg')));
    shown = clicked === shown ? 0 : clicked;
    const [left, all, row] = places[shown];
    frames.forEach((frame, index) => {
      const [x, width, y] = places[index];
      const isAround = y <= row && x < left + all / 2 && x + width > left + all / 2;
      const isInside = y > row && x > left - 0.002 && x + width < left + all + 0.002;
      frame.style.display = isAround || isInside ? '' : 'none';
      frame.setAttribute('x', isAround ? '0%' : `${(100 * (x - left)) / all}%`);
      frame.setAttribute('width', isAround ? '100%' : `${(100 * width) / all}%`);
    });
  });
}

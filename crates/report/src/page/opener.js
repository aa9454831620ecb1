// Gives speedscope the profile, as if a reader had dropped a file on it.
addEventListener('load', () => {
  const text = atob(document.getElementById('profile').textContent);
  const files = new DataTransfer();
  files.items.add(new File([Uint8Array.from(text, (c) => c.charCodeAt(0))], 'recording.speedscope.json'));
  const dropped = new DragEvent('drop', { dataTransfer: files, bubbles: true, cancelable: true });
  document.body.firstElementChild.dispatchEvent(dropped);
});

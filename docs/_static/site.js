// A figure opens in its own size: on a phone the panels of a wide one are small.
for (const image of document.querySelectorAll(".bd-article img")) {
  if (image.closest("a")) continue;
  const link = document.createElement("a");
  link.href = image.src;
  image.replaceWith(link);
  link.append(image);
}

// What the book lacks: how it talks with the page in its front page's frame, and the keyboard's way to its menu, into
// wide tables, and past its pictures.
"use strict";

// The book says whether it is dark, the page how high it is; in messages, for a book that was opened from a file may
// not look into its own frames.
const frame = document.getElementById("compare");
if (frame) {
    const book = document.documentElement;
    const tellTheme = () => {
        const dark = ["coal", "navy", "ayu"].some((theme) => book.classList.contains(theme));
        const paper = getComputedStyle(book).backgroundColor;
        frame.contentWindow.postMessage({ ratelimit: "theme", dark, paper }, "*");
    };
    new MutationObserver(tellTheme).observe(book, { attributeFilter: ["class"] });
    // The page answers with its height. Whichever of the two comes later begins, and a page that is loaded again has no theme yet.
    tellTheme();
    frame.addEventListener("load", tellTheme);
    window.addEventListener("message", ({ source, data }) => {
        if (source !== frame.contentWindow || data?.ratelimit !== "height" || !(data.pixels > 0)) return;
        if (!frame.style.height) tellTheme();
        frame.style.height = `${Math.ceil(data.pixels)}px`;
    });
}

// What is wider than the page scrolls, also by keys, and fades out where it goes on.
const WIDE = ".table-wrapper, pre > code";
const showMore = (element) => element.toggleAttribute("data-more", element.scrollLeft + element.clientWidth < element.scrollWidth - 1);
document.addEventListener("scroll", ({ target }) => { if (target.matches?.(WIDE)) showMore(target); }, true);

function reachWithKeys() {
    for (const element of document.querySelectorAll(WIDE)) {
        if (element.scrollWidth > element.clientWidth) element.tabIndex = 0;
        else element.removeAttribute("tabindex");
        showMore(element);
    }
}
window.addEventListener("load", reachWithKeys);
window.addEventListener("resize", reachWithKeys);

// A label for a hidden checkbox, which is called a button.
const menu = document.getElementById("mdbook-sidebar-toggle");
menu.tabIndex = 0;
menu.role = "button";
menu.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    menu.click();
});

// The book makes a checkbox of each picture, to enlarge it: a stop for the Tab key that nobody sees, and the picture
// twice for who listens. They are large enough.
for (const label of document.querySelectorAll(".checkbox-label")) label.replaceWith(label.querySelector("img"));

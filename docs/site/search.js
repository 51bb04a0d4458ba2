// What the book's search finds, with as much of elasticlunr's interface as the book calls. That needs an index of words four times
// as large as the texts; these are few enough to be read through for each search.
"use strict";

window.elasticlunr = (() => {
    // Words that say nothing about what is looked for.
    const SILENT = new Set("a an and are be by can do does for how i if in is it my of on or the to versus vs what when which why with".split(" "));
    // Words are looked for by how they begin: "limit" for "limiting", but "setting" and "string" are words as they stand.
    const stemmer = (word) => word.replace(/(?<=\w{4})(ies|s)$|(?<=\w{5})ing$/, "");
    // Each word of a query costs a reading of all texts, and somebody may paste a page.
    const MOST = 12;
    const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

    const occurrences = (text, pattern) => text.match(pattern)?.length ?? 0;

    function load({ documentStore: { docs } }) {
        const all = Object.entries(docs);

        // A word of a title counts most, and one that few sections have more than one that many have.
        function weights(pattern) {
            const found = all.map(([, { title, breadcrumbs, body }]) =>
                8 * Math.min(1, occurrences(title, pattern)) + 2 * Math.min(1, occurrences(breadcrumbs, pattern))
                    + Math.log2(1 + occurrences(body, pattern)) / (1 + body.length / 4000));
            const sections = found.filter(Boolean).length;
            return found.map((weight) => weight * Math.log(1 + all.length / Math.max(1, sections)));
        }

        function search(query) {
            const words = query.toLowerCase().split(/[\s,;?!"'`()]+/).filter(Boolean);
            const spoken = words.filter((word) => !SILENT.has(word));
            const terms = (spoken.length ? spoken : words).slice(0, MOST).map(stemmer).map(escaped);
            const pattern = (text) => new RegExp(`(?<!\\w)${text}`, "gi");
            const ofWords = terms.map((term) => weights(pattern(term)));
            // Two words that stand side by side are more than both of them.
            const ofPairs = terms.slice(1).map((term, i) => weights(pattern(`${terms[i]}\\W*${term}`)));
            const sum = (parts, i) => parts.reduce((sum, part) => sum + part[i], 0);
            const score = (i) => (sum(ofWords, i) + sum(ofPairs, i)) * (ofWords.filter((word) => word[i]).length / terms.length) ** 3;
            return all.map(([ref, doc], i) => ({ ref, doc, score: score(i) })).filter(({ score }) => score).sort((a, b) => b.score - a.score);
        }

        return { search };
    }

    return { stemmer, Index: { load } };
})();

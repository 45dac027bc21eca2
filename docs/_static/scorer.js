/* How the search ranks pages; read by Sphinx' searchtools.js. */
var Scorer = {
  objNameMatch: 30,
  objPartialMatch: 8,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 25,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
  // A word's page comes before its line in the glossary, and a page that explains before a long
  // list that has every word once.
  score: ([docname, , , , score, , kind]) => {
    if (docname === "glossary" && kind !== "title") return score / 2;
    const list = /^(architecture|changelog|conformance|contributing|lint-rules|operators)$/;
    return kind === "text" && list.test(docname) ? score / 4 : score;
  },
};

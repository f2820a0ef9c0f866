// How the search ranks what it finds: the values of Sphinx, and more for pages that
// explain than for lists of names, examples and changes. A word in a title (15) still
// counts more than one in the text of such a page (5 + 9).
const FIRST = [/^guide\//, /^coming_from\//];
const LAST = [/^changelog/, /^contributing/, /^releasing/, /\/index$/];

var Scorer = {
  score: (result) => {
    const [docname, , anchor, , score] = result;
    let more = 0;
    if (FIRST.some((page) => page.test(docname))) more = 9;
    if (LAST.some((page) => page.test(docname))) more = -4;
    // a page before its own sections
    return score + more - (anchor ? 1 : 0);
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};

/* In which order the search shows pages: manual pages, then pages for users, then examples, then those for developers,
   then histories. USER_PAGES are the pages that conf/docs/countwords counts. */
var Scorer = {
  score: function (result) {
    var name = result[0], score = result[4];
    if (/^manualpages\//.test(name)) return score + 4000;
    if (name !== 'README' && USER_PAGES.indexOf(name) >= 0) return score + 3000;
    if (/^(README$|examples\/|index$|guide$|gpu$)/.test(name)) return score + 2000;
    if (/^(CHANGELOG|docs\/(tried|testing|tests|log|measured))$/.test(name)) return score;
    return score + 1000;
  },
  objNameMatch: 11, objPartialMatch: 6, objPrio: {0: 15, 1: 5, 2: -5}, objPrioDefault: 0,
  title: 15, partialTitle: 7, term: 5, partialTerm: 2
};

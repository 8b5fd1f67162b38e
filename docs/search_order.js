/* Order of the site's search: pages that explain come before those that record. The other numbers are Sphinx's own. */
const ORDER = [
  [/^CHANGELOG|^CONTRIBUTING/, 0.1],
  [/^benchmarks\//, 0.25],
  [/^docs\/design\//, 0.3],
  [/^docs\/gallery\/|^docs\/coming_from|^docs\/usd_attributes/, 0.7],
  [/^docs\/api\//, 1.0],
  [/^tutorials\/|^docs\/tasks\//, 1.0],
  [/^docs\//, 2.0],
];

var Scorer = {
  score: ([page, , , , score]) => score * (ORDER.find(([pages]) => pages.test(page)) ?? [null, 0.5])[1],
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};

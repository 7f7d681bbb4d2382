import { palette } from '../../src/http/palette.js'

/** Style of the page: the colours of all pages, one column on narrow screens. */
export const pageStyle = `${palette}:root { --rival: #8a94a0; --part: #7cb4e8; }
@media (prefers-color-scheme: dark) { :root { --rival: #76818c; --part: #2d6da8; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 72rem; padding: 1rem; font: 15px/1.5 system-ui, sans-serif; color: var(--ink);
  background: var(--page); }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; }
h2 { font-size: 1.2rem; margin: 2rem 0 .5rem; }
h3 { font-size: 1rem; margin: 0 0 .25rem; }
p { margin: .25rem 0 .5rem; }
.soft { color: var(--quiet); font-size: .85rem; overflow-wrap: anywhere; }
.cases { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); gap: 1rem; }
.case { border: 1px solid var(--line); border-radius: 8px; padding: .8rem; min-width: 0; }
.failed, .missed { color: var(--bad); }
.met { color: var(--good); }
svg { display: block; margin: .4rem 0; overflow: visible; }
svg text { fill: var(--ink); font-size: 12.5px; }
svg .number { fill: var(--quiet); }
rect.ours, circle.ours { fill: var(--accent); }
rect.rival, circle.rival { fill: var(--rival); }
rect.part, circle.part { fill: var(--part); }
line.range { stroke-width: 2; opacity: .5; }
line.ours { stroke: var(--accent); }
line.rival { stroke: var(--rival); }
line.part { stroke: var(--part); }
line.axis { stroke: var(--line); }
line.mark { stroke: var(--ink); stroke-width: 2; }
rect.more { fill: var(--good); }
rect.less { fill: var(--rival); }
rect.missed { fill: var(--bad); }
polyline { fill: none; stroke-width: 2; stroke: var(--accent); }
details { margin-top: .4rem; }
summary { cursor: pointer; color: var(--quiet); font-size: .85rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .8rem; font-variant-numeric: tabular-nums; }
th, td { padding: .15rem .5rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
.overview td, .overview th { text-align: left; vertical-align: top; }
.overview td:nth-child(2) { white-space: normal; min-width: 16rem; }
`

/** How the paywall looks: one column, light and dark, readable on a telephone. */
export const paywallStyle = `
:root{color-scheme:light dark;--page:#f5f5f2;--card:#fff;--ink:#1c1d1f;--soft:#5a5d63;--line:#dcdcd6;
--act:#0b57d0;--on:#fff;--bad:#a8201a}
@media (prefers-color-scheme:dark){:root{--page:#141517;--card:#1e2023;--ink:#ececea;--soft:#a9adb4;--line:#34373c;
--act:#8ab4f8;--on:#10213d;--bad:#ff9d96}}
*{box-sizing:border-box}
body{margin:0;min-height:100vh;display:grid;place-items:center;padding:1rem;
background:var(--page);color:var(--ink);font:1rem/1.5 system-ui,sans-serif}
main{width:100%;max-width:28rem;padding:2rem;background:var(--card);border:1px solid var(--line);border-radius:.75rem}
img{display:block;max-width:8rem;max-height:4rem;margin-bottom:1rem}
h1{margin:0 0 .5rem;font-size:1.25rem;line-height:1.3;overflow-wrap:anywhere}
p{margin:0 0 1rem;color:var(--soft)}
.price{margin:0 0 1rem;font-size:2.25rem;font-weight:600;line-height:1.2;color:var(--ink);overflow-wrap:anywhere}
.price small{font-size:1rem;font-weight:400;color:var(--soft)}
dl{display:grid;grid-template-columns:auto 1fr;gap:.25rem 1rem;margin:0 0 1.5rem}
dt{color:var(--soft)}
dd{margin:0;text-align:right;overflow-wrap:anywhere}
button{width:100%;padding:.75rem 1rem;border:0;border-radius:.5rem;
background:var(--act);color:var(--on);font:inherit;font-weight:600;cursor:pointer}
button:disabled{opacity:.55;cursor:default}
button:focus-visible,a:focus-visible{outline:3px solid var(--act);outline-offset:3px}
#word{min-height:1.5rem;margin:1rem 0 0;overflow-wrap:anywhere}
#word.bad{color:var(--bad)}
a{color:var(--act)}
pre{margin:1rem 0 0;padding:1rem;border:1px solid var(--line);border-radius:.5rem;white-space:pre-wrap;overflow-wrap:anywhere}
.more{margin:1rem 0 0;text-align:center}
`

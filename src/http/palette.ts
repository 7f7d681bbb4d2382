/** Colours of every page of this program, as CSS: light and dark as the reader's system is. */
export const palette = `:root{color-scheme:light dark;--page:#f6f7f8;--card:#fff;--line:#d9dde1;--ink:#16191d;--quiet:#59626c;\
--accent:#0b62a8;--chosen:#dcebf8;--good:#17742f;--warn:#8a5a00;--bad:#b3261e;\
--good-ground:#e7f4ea;--warn-ground:#fdf3da;--bad-ground:#fbe9e7}
@media (prefers-color-scheme:dark){:root{--page:#111417;--card:#191d21;--line:#30373e;--ink:#e6e9ec;--quiet:#98a2ac;\
--accent:#62b0ee;--chosen:#22384b;--good:#66c47c;--warn:#e3b350;--bad:#f0857b;\
--good-ground:#16281b;--warn-ground:#2d2612;--bad-ground:#321a18}}
`

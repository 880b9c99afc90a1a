"""The styles of every page: light and dark, from the width of a phone to that of a wall."""

from typing import Final

CSS: Final = """
:root{--ink:#1c2024;--soft:#5c6670;--paper:#fdfdfc;--card:#fff;--line:#dfe3e6;--span:#9aa3ab55;
--c0:#0b6bcb;--c1:#c2510c;--c2:#12805c;--c3:#8b3fb5;--c4:#b3261e;--c5:#6b7280;--c6:#0e7490;
--c7:#a16207;--note:#fff6df;--edge:#d9a514}
@media (prefers-color-scheme:dark){:root{--ink:#e6e9ec;--soft:#9ba6b0;--paper:#121517;
--card:#1a1e21;--line:#31373d;--span:#7a848e55;--c0:#6cb0f5;--c1:#f39c5b;--c2:#4fc79a;
--c3:#c792e8;--c4:#f2877f;--c5:#a3abb4;--c6:#5cc4dc;--c7:#dcb348;--note:#2c2613;--edge:#b98d1e}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);
font:1rem/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
main,footer{max-width:84rem;margin:0 auto;padding:1rem clamp(.75rem,3vw,2.5rem)}
h1{font-size:clamp(1.35rem,1rem + 1.6vw,2rem);line-height:1.2;margin:.6rem 0;overflow-wrap:anywhere}
h2{font-size:1.25rem;margin:2rem 0 .6rem}
h3{font-size:1.05rem;margin:0}
p{margin:.4rem 0;max-width:75ch}
.lead{color:var(--soft)}
.note{background:var(--note);border-left:4px solid var(--edge);padding:.5rem .8rem;max-width:none}
.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(9rem,1fr));gap:.6rem;margin:0}
.facts div{background:var(--card);border:1px solid var(--line);border-radius:.5rem;
padding:.5rem .8rem}
.facts dt{color:var(--soft);font-size:.85rem}
.facts dd{margin:0;font-size:1.35rem;font-variant-numeric:tabular-nums}
figure{margin:1rem 0 0;padding:1rem clamp(.5rem,2vw,1.25rem) .6rem;background:var(--card);
border:1px solid var(--line);border-radius:.5rem}
figcaption p,.axis{color:var(--soft);font-size:.85rem}
.axis{margin:.5rem 0 0}
.across{text-align:right;margin:0;max-width:none}
.frame{padding:.8rem 1.6rem 2rem 3.6rem}
.plot{display:block;width:100%;height:clamp(11rem,26vw,19rem);overflow:visible}
.plot text{fill:var(--soft);font-size:.78rem;font-variant-numeric:tabular-nums}
.plot .y{text-anchor:end}
.tick text{text-anchor:middle}
.grid{stroke:var(--line);stroke-width:1}
.line,.step,.area{fill:none;stroke-width:1.75;vector-effect:non-scaling-stroke;stroke-linejoin:round}
.area{stroke-width:.75;fill-opacity:.25}
.dashed{stroke-dasharray:6 4}
.rule{stroke:var(--soft);stroke-width:1.5;stroke-dasharray:2 4}
text.rule{stroke:none}
.level{text-anchor:end}
.span{fill:var(--span)}
.zone{fill:transparent}
.zone:hover{fill:var(--span)}
.legend{display:flex;flex-wrap:wrap;gap:.2rem 1.1rem;list-style:none;margin:.4rem 0 0;padding:0;
font-size:.9rem}
.legend li{display:flex;align-items:center;gap:.4rem}
.key{width:26px;height:14px;flex:none}
.dot circle{fill-opacity:.8}
.dot text{display:none}
.dot.left text{text-anchor:end}
.plot .dot.strong text,.plot .dot:hover text,.plot .dot:focus text{display:block;fill:var(--ink);
paint-order:stroke;stroke:var(--card);stroke-width:4px}
.dot.strong text{font-weight:600}
.dot:focus{outline:none}
.dot:focus circle{stroke:var(--ink);stroke-width:3}
.scroll{overflow-x:auto;max-width:100%}
.scroll:focus-visible,summary:focus-visible{outline:2px solid var(--c0);outline-offset:2px}
table{border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums;margin:.4rem 0}
caption{text-align:left;color:var(--soft)}
th,td{padding:.25rem .9rem .25rem 0;border-bottom:1px solid var(--line);text-align:right;
white-space:nowrap}
th:first-child{text-align:left}
tbody th{font-weight:400}
details{margin:.3rem 0 0;font-size:.9rem}
summary{cursor:pointer;color:var(--soft);padding:.25rem 0}
footer{color:var(--soft);font-size:.85rem}
@media (max-width:40rem){.minor{display:none}.frame{padding-left:3rem;padding-right:1rem}}
@media print{.zone{display:none}figure{break-inside:avoid}}
""" + "".join(
    f".c{n}{{stroke:var(--c{n})}}.area.c{n},.dot.c{n} circle{{fill:var(--c{n})}}"
    f".dot.c{n}{{stroke:none}}"
    for n in range(8)
)
"""Light and dark by what the reader's system asks for; colours are told apart by the most common
kinds of colour blindness, and never carry a meaning alone."""

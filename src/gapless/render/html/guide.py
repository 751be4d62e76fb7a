"""How is this page read by somebody who has never seen a trace? Literal text and one drawing."""

from __future__ import annotations

from gapless.render.html.markup import Html

GUIDE = Html("""
<p class="lead">Two workers share your program. The <b>host</b> (CPU) runs Python and prepares orders; the <b>GPU</b>
carries them out. They work at the same time, and the art is that neither waits for the other.</p>
<svg class="figure" viewBox="0 0 760 190" role="img" aria-label="The host launches three kernels quickly; the GPU runs
them later, one after the other; then the host waits in item() until the GPU is done; then the GPU idles until the host
launches again.">
<text x="0" y="26" class="lane">host</text><text x="0" y="112" class="lane">GPU</text>
<rect x="60" y="10" width="52" height="24" class="b-op"/><rect x="114" y="10" width="52" height="24" class="b-op"/>
<rect x="168" y="10" width="52" height="24" class="b-op"/><rect x="222" y="10" width="268" height="24" class="b-wait"/>
<rect x="492" y="10" width="60" height="24" class="b-op"/><rect x="554" y="10" width="60" height="24" class="b-op"/>
<text x="66" y="26" class="on">launch</text><text x="120" y="26" class="on">launch</text><text x="174" y="26" class="on">launch</text>
<text x="300" y="27" class="dark">wait: item()</text><text x="500" y="26" class="on">launch</text><text x="562" y="26" class="on">launch</text>
<rect x="128" y="96" width="120" height="24" class="b-gpu"/><rect x="250" y="96" width="120" height="24" class="b-gpu"/>
<rect x="372" y="96" width="110" height="24" class="b-gpu"/><rect x="484" y="96" width="84" height="24" class="b-idle"/>
<rect x="570" y="96" width="110" height="24" class="b-gpu"/>
<text x="160" y="112" class="on">kernel</text><text x="282" y="112" class="on">kernel</text><text x="402" y="112" class="on">kernel</text>
<text x="510" y="112" class="on">idle</text><text x="602" y="112" class="on">kernel</text>
<path d="M90 34 C90 66 130 60 132 94" class="arrow"/><path d="M142 34 C142 70 252 56 254 94" class="arrow"/>
<path d="M196 34 C196 70 372 56 376 94" class="arrow"/><path d="M524 34 C524 66 572 60 574 94" class="arrow"/>
<path d="M484 34 C484 60 482 70 481 94" class="arrow back"/>
<text x="60" y="152" class="note">1 launching is quick: the host runs ahead</text>
<text x="60" y="172" class="note">2 the wait is long because the GPU's work is, not because item() is slow</text>
<text x="484" y="152" class="note">3 the queue ran empty: the GPU</text><text x="484" y="172" class="note">idles until the next launch arrives</text>
</svg>
<dl class="guide">
<dt>Lane</dt><dd>One row of the timeline: a thread of the host, or a stream (a queue) of the GPU. Boxes inside boxes are
calls inside calls.</dd>
<dt>Launch</dt><dd>The host hands the GPU an order and goes on at once. The arrow from a launch leads to the work it
ordered, which may begin much later.</dd>
<dt>Wait (hatched)</dt><dd>The host stands still until the GPU is done. A wait of 5 ms is not 5 ms of work: it is 5 ms of
GPU work that somebody is looking at. Removing the wait saves only the time in which the GPU then has nothing to do.</dd>
<dt>Idle (hatched in the device's strip)</dt><dd>The GPU has nothing to run. Its colour says what the host was doing
instead of launching the next piece of work.</dd>
<dt>Queue depth</dt><dd>How many launches are ahead of the GPU. High: the host is fast enough. Zero: the GPU is about to
idle.</dd>
<dt>Critical chain</dt><dd>The pieces that, one after the other, decided how long the step took. Making anything else
faster changes nothing.</dd>
<dt>Step time, recorded and without the profiler</dt><dd>Recording slows the host down. Your stopwatch shows the second
number; shares and waits are from the recording.</dd>
<dt>Predicted gain</dt><dd>The recorded program is run again in a model without the fault. It comes with a range, and with
the reason why it may be wrong.</dd>
</dl>
""")

HELP = Html("""
<h2>Keys and gestures</h2>
<table class="keys"><tbody>
<tr><td><kbd>w</kbd> <kbd>s</kbd></td><td>zoom in, out (also the wheel once the timeline is clicked, or Ctrl with the wheel; two fingers)</td></tr>
<tr><td><kbd>a</kbd> <kbd>d</kbd></td><td>move left, right (also drag)</td></tr>
<tr><td><kbd>f</kbd></td><td>fit the step; <kbd>0</kbd> shows all that this page carries</td></tr>
<tr><td><kbd>/</kbd></td><td>search by name; <kbd>Enter</kbd> next, <kbd>Shift</kbd>+<kbd>Enter</kbd> back, <kbd>Esc</kbd> clear</td></tr>
<tr><td><kbd>←</kbd> <kbd>→</kbd> <kbd>↑</kbd> <kbd>↓</kbd></td><td>go from box to box; <kbd>Enter</kbd> zooms to it</td></tr>
<tr><td><kbd>n</kbd> <kbd>p</kbd></td><td>next, previous place of a finding</td></tr>
<tr><td><kbd>c</kbd> <kbd>l</kbd></td><td>critical chain, arrows on and off</td></tr>
<tr><td><kbd>?</kbd></td><td>this help</td></tr>
</tbody></table>
<p>Click a box to read what it is and why it is there. Click a lane's title to fold it. The address bar always holds a
link to what you see.</p>
""")

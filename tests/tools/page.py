# SPDX-License-Identifier: Apache-2.0
"""page.py TO FROM URL ROWS: opens the pages of trace_page.sh in the browser that reads its commands
(of the DevTools protocol) from TO and answers to FROM, and uses them as a person does. ROWS has
thousands of rows."""
import json
import math
import sys

WIDTH, LABEL, TOP, ROW = 1220, 220, 22, 18  # of the picture, which page_end.html states


class Browser:
    """The protocol: messages of JSON that end in a 0."""

    def __init__(self, to, answers):
        self.to, self.answers = open(to, "wb"), open(answers, "rb")
        self.rest, self.count, self.session, self.events = b"", 0, None, []

    def read(self):
        while b"\0" not in self.rest:
            got = self.answers.read1()
            assert got, "the browser ended"
            self.rest += got
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def ask(self, method, **params):
        self.count += 1
        message = {"id": self.count, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        self.to.write(json.dumps(message).encode() + b"\0")
        self.to.flush()
        while True:
            answer = self.read()
            if answer.get("id") == self.count:
                assert "error" not in answer, answer
                return answer["result"]
            self.events.append(answer)

    def seen(self, event):
        return [seen["params"] for seen in self.events if seen.get("method") == event]

    def load(self, url):
        loads = len(self.seen("Page.loadEventFired"))
        self.ask("Page.navigate", url=url)
        while len(self.seen("Page.loadEventFired")) == loads:
            self.events.append(self.read())

    def start(self):
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.resize(3000)  # no scroll bar
        for domain in "Page", "Runtime", "Network":
            self.ask(domain + ".enable")

    def resize(self, height):
        self.ask("Emulation.setDeviceMetricsOverride", width=WIDTH, height=height,
                 deviceScaleFactor=1, mobile=False)

    def value(self, expression):
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True,
                          awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def mouse(self, kind, x, y, **more):
        self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def press(self, x, y):
        self.mouse("mousePressed", x, y, button="left", buttons=1, clickCount=1)

    def release(self, x, y):
        self.mouse("mouseReleased", x, y, button="left", clickCount=1)


browser = Browser(*sys.argv[1:3])
browser.start()
browser.load(sys.argv[3])
top = browser.value("canvas.getBoundingClientRect().top")


def place(us, row):
    """Where a moment of a row is, if the whole is shown."""
    return LABEL + us, top + TOP + row * ROW + ROW // 2


def row_of(text):
    return browser.value("data.tracks.find(track => track.name.includes('%s')).first" % text)


def alphas(row):
    """How strongly each us of a row is painted: 255 if it is an event."""
    return browser.value("Array.from(pen.getImageData(%d, %d, 1000, 1).data).filter((_, i) => "
                         "i %% 4 === 3)" % (LABEL, TOP + row * ROW + ROW // 2))


def shown(start, end):
    """These ns are shown; the browser has computed them in doubles, too."""
    got = browser.value("[from, to]")
    assert all(math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-3)
               for a, b in zip(got, (start, end))), (got, start, end)


def painted(row, *spans):
    """Exactly these spans of us are painted in a row."""
    got = {us for us, alpha in enumerate(alphas(row)) if alpha == 255}
    expected = {us for start, end in spans for us in range(start, end)}
    assert got == expected, (row, sorted(got ^ expected))


def about():
    return browser.value("document.getElementById('about').textContent")


# What is drawn. Kernels that overlap have lanes of their own, and so has what spans enclose.
status = browser.value("document.getElementById('status').textContent")
assert status == "1.00 ms shown, 7 of 7 events drawn", status
queue, thread = row_of("cpu://"), row_of(" of ")
painted(queue, (0, 400), (500, 900))
painted(queue + 1, (200, 600))
painted(thread, (0, 1000))
painted(thread + 1, (100, 500), (600, 700))
painted(thread + 2, (200, 300))
summary = browser.value("document.getElementById('summary').innerText")
for part in "operations on processors", "busy: ", "launch latency", "######\n":
    assert part in summary, part

# A click tells what an event is.
for us, row, text in ((250, queue, "one\n400.00 us from 0 ns, "),
                      (250, queue + 1, "two\n400.00 us from 200.00 us, "),
                      (250, thread + 2, "call\n100.00 us from 200.00 us, ")):
    browser.press(*place(us, row))
    browser.release(*place(us, row))
    assert about().startswith(text), (about(), text)
browser.press(*place(700, queue + 1))
browser.release(*place(700, queue + 1))
assert about() == "", about()

# The wheel zooms, around the pointer.
x, y = place(500, queue)
browser.mouse("mouseWheel", x, y, deltaX=0, deltaY=-400)
half = 500000 / math.e
shown(500000 - half, 500000 + half)
assert "367.88 us shown" in browser.value("document.getElementById('status').textContent")

# A drag moves, and is no click.
browser.press(x, y)
browser.mouse("mouseMoved", x + 50, y, buttons=1)
browser.mouse("mouseMoved", x + 100, y, buttons=1)
browser.release(x + 100, y)
shown(500000 - 1.2 * half, 500000 + 0.8 * half)
assert about() == "", about()
browser.mouse("mouseMoved", x, y)
shown(500000 - 1.2 * half, 500000 + 0.8 * half)

# Zoomed in as far as it goes, there is still something; and all can be shown again.
for _ in range(20):
    browser.mouse("mouseWheel", x, y, deltaX=0, deltaY=-400)
assert browser.value("to - from") >= 9.999
button = browser.value("""(() => { const at = document.getElementById('all').getBoundingClientRect();
    return [at.x + at.width / 2, at.y + at.height / 2]; })()""")
browser.press(*button)
browser.release(*button)
shown(0, 1000000)
painted(queue, (0, 400), (500, 900))

# What is not looked for is faint.
browser.value("document.getElementById('find').focus()")
browser.ask("Input.insertText", text="two")
painted(queue + 1, (200, 600))
painted(queue)
assert all(alphas(queue)[us] > 0 for us in (100, 300, 600, 800))

# The picture is as wide as its place, also if that is changed, or there is a scroll bar.
browser.value("document.body.style.width = '1000px'")
while browser.value("canvas.width") != 1000:
    browser.value("new Promise(done => requestAnimationFrame(done))")
for height in range(300, 1200, 100):
    browser.resize(height)
    browser.load(sys.argv[3])
    assert browser.value("canvas.width === canvas.clientWidth"), height

# Of thousands of rows those in sight are drawn, and all can be reached.
browser.resize(1000)
browser.load(sys.argv[4])
assert browser.value("rows.length") == 5000
top, height = browser.value("canvas.getBoundingClientRect().top"), browser.value("canvas.height")
LEFT = browser.value("width") - LABEL  # beside the scroll bar


def seen(first):
    """The rows from this one on are shown, each with its call."""
    while browser.value("pane.scrollTop") != first * ROW:  # the browser may scroll step by step
        browser.value("new Promise(done => requestAnimationFrame(done))")
    browser.value("draw()")
    count = (height - TOP) // ROW
    for row in (0, 1, count - 1):
        us = (first + row) % 250 * 4 + 2  # the middle of its call
        x, y = LABEL + round(us / 1000 * LEFT), TOP + row * ROW + ROW // 2
        alpha = "pen.getImageData(%d, %d, 1, 1).data[3]"
        assert browser.value(alpha % (x, y)) == 255, (first, row)
        assert browser.value(alpha % (x + 20, y)) < 255, (first, row)
        browser.press(x, top + y)
        browser.release(x, top + y)
        assert (" %d of " % (first + row)) in about(), (about(), first, row)
    drawn = int(browser.value("canvas.dataset.drawn"))
    assert count <= drawn <= count + 2, (drawn, count)


assert 500 < height < 1000, height
seen(0)
browser.value("pane.scrollTop = 2000 * %d" % ROW)
seen(2000)
browser.mouse("mouseWheel", LABEL + 500, top + 100, deltaX=0, deltaY=10 * ROW, modifiers=8)
seen(2010)
browser.press(LABEL + 500, top + 400)
browser.mouse("mouseMoved", LABEL + 500, top + 400 - 5 * ROW, buttons=1)
browser.release(LABEL + 500, top + 400 - 5 * ROW)
seen(2015)
browser.value("pane.scrollTop = 1e9")
browser.value("draw()")  # where it is scrolled to is known from then on
assert browser.value("y_of(5000) <= height && row_at(height) >= 4999")
assert browser.value("draw() || pen.getImageData(%d, y_of(4999) + 9, 1, 1).data[3]" %
                     (LABEL + round(998 / 1000 * LEFT))) == 255

# Nothing went wrong, and nothing but the pages was fetched.
assert not browser.seen("Runtime.exceptionThrown"), browser.seen("Runtime.exceptionThrown")
fetched = {seen["request"]["url"] for seen in browser.seen("Network.requestWillBeSent")}
assert fetched == set(sys.argv[3:]), fetched
browser.session = None
browser.ask("Browser.close")

import { randomBytes } from 'node:crypto'
import t, { type Test } from 'tap'
import type { Id } from '../../src/format/id.js'
import type { Reason } from '../../src/format/refusal.js'
import type { Finder, Transfers } from '../../src/gateway/gateway-parts.js'
import type { Hints } from '../../src/source/source-messages.js'
import { someId } from '../source/rig.js'
import { contentOnly, stage } from './rig.js'

/** A network in which one item lies in one root; elsewhere the sources refuse. */
async function scene(
  t: Test,
  bandSays: (right: Hints) => Hints | undefined,
  elsewhere: Reason = 'unknown',
  more = {},
) {
  const body = randomBytes(900)
  const right = { rootId: someId(), itemOffset: 128, itemSize: 2000 }
  const opened: Hints[] = []
  let lookups = 0
  let held = 0
  const transfers: Transfers = {
    async open({ id, hints }) {
      opened.push(hints)
      if (hints.rootId !== right.rootId)
        return { refused: elsewhere, fault: 'upstream', message: 'not there', ...more }
      held += 1
      const content = {
        sizeBytes: body.length,
        read: (start: number, end: number) => body.subarray(start, end),
        ready: async () => true,
        close: () => {
          held -= 1
        },
      }
      const attributes = { id, size: body.length, verified: false, trusted: true }
      return {
        attributes,
        content,
        span: { start: 0, end: body.length },
        source: 'chunks',
        trusted: true,
        manifestFrom: { reader: 1 },
      }
    },
    check: async () => true,
    ...contentOnly,
  }
  const finder: Finder = {
    find() {
      lookups += 1
      return lookups % 2 === 0 ? Promise.resolve(bandSays(right)) : bandSays(right)
    },
  }
  const on = await stage({ parts: { transfers, finder } })
  t.teardown(async () => {
    await on.close()
    if (held !== 0) throw new Error('content was left open')
  })
  const ask = (hints: Hints = {}) => {
    const { rootId, itemOffset, itemSize } = hints
    const headers: Record<string, string> = {}
    if (rootId !== undefined) headers['x-gateway-root-transaction-id'] = rootId
    if (itemOffset !== undefined) headers['x-gateway-root-item-offset'] = String(itemOffset)
    if (itemSize !== undefined) headers['x-gateway-root-item-size'] = String(itemSize)
    return on.ask(`/raw/${someId()}`, { headers })
  }
  return { right, body, opened, ask, lookups: () => lookups }
}

const wrong = (): { rootId: Id; itemOffset: number; itemSize: number } => ({
  rootId: someId(),
  itemOffset: 7,
  itemSize: 70,
})

t.test("a client's offset is tried first, and bands are not asked where it is right", async (t) => {
  const { right, body, opened, ask, lookups } = await scene(t, wrong)
  const answer = await ask(right)
  t.equal(answer.status, 200)
  t.ok(answer.body.equals(body))
  t.same(opened, [right])
  t.equal(lookups(), 0)
})

t.test("bands are used where the client's offset is wrong or absent", async (t) => {
  const { right, opened, ask } = await scene(t, (right) => right)
  const hint = wrong()
  t.equal((await ask(hint)).status, 200)
  t.same(opened, [hint, right])
  t.equal((await ask({ rootId: hint.rootId })).status, 200)
  t.same(opened.slice(2), [right], 'a band with an offset comes before a root alone')
  t.equal((await ask()).status, 200)
  t.equal(opened.length, 4)
})

t.test("a band that is wrong does not hide a client's right root", async (t) => {
  const { right, opened, ask } = await scene(t, wrong)
  t.equal((await ask({ rootId: right.rootId })).status, 200)
  t.equal(opened.length, 2)
})

t.test('no place is tried twice', async (t) => {
  const band = wrong()
  const { opened, ask } = await scene(t, () => band)
  t.equal((await ask(band)).status, 404)
  t.equal(opened.length, 1, 'both say the same')
  t.equal((await ask()).status, 404)
  t.equal(opened.length, 2, 'the client says nothing')
  t.equal((await ask(wrong())).status, 404)
  t.equal(opened.length, 4)
})

t.test('no cache keeps a 404 where somebody who may know the id gave no answer', async (t) => {
  for (const isUnsure of [true, undefined]) {
    const { status, headers } = await (await scene(t, () => undefined, 'unknown', { isUnsure })).ask()
    t.equal(status, 404)
    t.equal(headers['cache-control'], isUnsure ? 'no-store' : 'public, max-age=60, must-revalidate')
    t.equal(headers['retry-after'], isUnsure && '10')
  }
})

t.test('a failure is not answered as 404, and a slow source is not asked again', async (t) => {
  const failing = await scene(t, wrong, 'upstream')
  t.equal((await failing.ask(wrong())).status, 502)
  t.equal(failing.opened.length, 2)
  const slow = await scene(t, wrong, 'late')
  t.equal((await slow.ask(wrong())).status, 504)
  t.equal(slow.opened.length, 1)
})

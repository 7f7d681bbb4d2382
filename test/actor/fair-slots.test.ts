import t from 'tap'
import { FairSlots, type Release } from '../../src/actor/fair-slots.js'
import { isRefusal } from '../../src/format/refusal.js'

async function taken(slots: FairSlots, client = '', signal?: AbortSignal): Promise<Release> {
  const slot = await slots.wait(client, signal)
  if (isRefusal(slot)) throw new Error(slot.message)
  return slot
}

t.test('calls of one client get their slots in the order they came', async (t) => {
  const slots = new FairSlots({ max: 1, waitingMax: 3 })
  const first = await taken(slots)
  const order: number[] = []
  const waiting = [1, 2, 3].map(async (name) => {
    const slot = await taken(slots)
    order.push(name)
    slot()
  })
  t.match(await slots.wait(), { refused: 'busy', fault: 'self' })
  first()
  first()
  await Promise.all(waiting)
  t.same(order, [1, 2, 3])
  t.equal(slots.taken, 0, 'a slot given back twice counts once')
})

t.test('a caller that gives up frees its place and takes no slot', async (t) => {
  const slots = new FairSlots({ max: 1, waitingMax: 1 })
  const first = await taken(slots)
  const control = new AbortController()
  const left = slots.wait('', control.signal)
  control.abort()
  t.match(await left, { refused: 'late', fault: 'client' })
  t.match(await slots.wait('', control.signal), { refused: 'late' }, 'nor one who left before')
  const next = taken(slots)
  first()
  const slot = await next
  t.equal(slots.taken, 1)
  slot()
  t.equal(slots.taken, 0)
})

t.test('a client has its share, of what is held and of what waits', async (t) => {
  const slots = new FairSlots({ max: 8, eachMax: 2 })
  t.type(slots.take('greedy'), 'function')
  const second = slots.take('greedy')
  t.equal(slots.take('greedy'), 'client')
  for (let at = 0; at < 6; at += 1) t.type(slots.take(`other ${at}`), 'function')
  t.equal(slots.take('late'), 'all')
  t.equal(slots.take('greedy'), 'client', 'its own fault is told first')
  if (typeof second === 'function') second()
  t.type(slots.take('late'), 'function')

  const line = new FairSlots({ max: 1, waitingMax: 100, eachMax: 2 })
  const held = await taken(line, 'a')
  const waits = taken(line, 'a')
  t.match(await line.wait('a'), { refused: 'busy', fault: 'client' })
  held()
  ;(await waits)()
})

t.test('the client with fewest slots is next, however many calls of another one wait', async (t) => {
  const slots = new FairSlots({ max: 1, waitingMax: 100 })
  const order: string[] = []
  const use = async (client: string): Promise<void> => {
    const slot = await taken(slots, client)
    order.push(client)
    slot()
  }
  const first = await taken(slots, 'greedy')
  const uses = Array.from({ length: 20 }, () => use('greedy'))
  uses.push(use('modest'))
  first()
  await Promise.all(uses)
  t.ok(order.indexOf('modest') <= 1, `behind ${order.indexOf('modest')} of 20`)
})

t.test('forced slots count against the bound', async (t) => {
  const slots = new FairSlots({ max: 1, waitingMax: 2 })
  const forced = [slots.force('a'), slots.force('a')]
  t.equal(slots.taken, 2)
  let got = false
  const waits = taken(slots, 'b').then((slot) => {
    got = true
    return slot
  })
  forced[0]?.()
  await new Promise((resolve) => setImmediate(resolve))
  t.notOk(got, 'there is still one too many')
  forced[1]?.()
  const slot = await waits
  t.equal(slots.taken, 1)
  slot()
})

t.test('a slot is released when the work in it throws', async (t) => {
  const slots = FairSlots.unbounded(1)
  await t.rejects(
    slots.run(() => Promise.reject(new Error('no'))),
    /no/,
  )
  t.equal(await slots.run(async () => 7), 7)
  t.equal(slots.taken, 0)
})

t.test(
  'with a clock, who has held slots for longer is behind who has held as many for a moment',
  async (t) => {
    for (const isTimed of [true, false]) {
      let nowMs = 0
      const clock = { monotonic: () => nowMs }
      const slots = new FairSlots({ max: 1, waitingMax: 8, ...(isTimed ? { clock } : {}) })
      const order: string[] = []
      const use = async (client: string, ms: number): Promise<void> => {
        const slot = await taken(slots, client)
        order.push(client)
        await Promise.resolve()
        nowMs += ms
        slot()
      }
      await Promise.all(['a', 'b', 'a', 'b', 'b'].map((client) => use(client, client === 'a' ? 100 : 1)))
      t.same(order.join(''), isTimed ? 'abbba' : 'ababb')
    }
  },
)

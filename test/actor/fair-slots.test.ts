import t from 'tap'
import { FairSlots, type Release } from '../../src/actor/fair-slots.js'
import { isRefusal } from '../../src/format/refusal.js'
import { fc } from '../property.js'

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

/** Asks so often for each of the clients; how many slots they hold together, while nobody gives one back. */
async function holding(slots: FairSlots, clients: readonly string[], times = 64): Promise<Release[]> {
  const held: Release[] = []
  for (const client of clients)
    for (let at = 0; at < times; at += 1)
      void slots.wait(client).then((slot) => isRefusal(slot) || held.push(slot))
  await new Promise((resolve) => setImmediate(resolve))
  return held
}

t.test('calls that are not given back leave slots for others: of clients, networks, providers', async (t) => {
  const among = (part: (at: number) => string): string[] => Array.from({ length: 40 }, (_, at) => part(at))
  const cases: [number, string[]][] = [
    [32, ['45.33.7.1']],
    [32, among((at) => `45.33.7.${at}`)],
    [32, among((at) => `2001:db8:1:${at}::1`)],
    [48, among((at) => `45.33.${at}.1`)],
    [48, ['45.33.7.1', '46.1.1.1']],
  ]
  for (const [most, clients] of cases) {
    const slots = new FairSlots({ max: 64, waitingMax: 8192 })
    const held = await holding(slots, clients)
    t.equal(held.length, most, `${clients.length} addresses`)
    for (let at = 0; at < 8; at += 1)
      t.type(slots.take(`198.${at}.100.1`), 'function', 'a newcomer finds one')
    const others = FairSlots.unbounded(2)
    t.equal((await holding(others, [''])).length, 2, 'the program itself is bounded elsewhere')
  }
})

t.test('who has its share waits for its own slots, and then goes on', async (t) => {
  const slots = new FairSlots({ max: 4, waitingMax: 100 })
  const held = await holding(slots, ['45.33.7.1'], 6)
  t.equal(held.length, 2)
  const other = await taken(slots, '46.1.1.1')
  other()
  await new Promise((resolve) => setImmediate(resolve))
  t.equal(held.length, 2, 'what another gives back is not for it')
  for (let at = 0; at < 6; at += 1) {
    held[at]?.()
    await new Promise((resolve) => setImmediate(resolve))
  }
  t.equal(held.length, 6)
  t.equal(slots.taken, 0)
})

t.test('slots that are given back in a moment are all for one client', async (t) => {
  const slots = new FairSlots({ max: 64, waitingMax: 100, isBrief: true })
  t.equal((await holding(slots, ['45.33.7.1'])).length, 64)
})

t.test('no slot is free for one that waits, and nobody has more than the share', async () => {
  const max = 8
  const addresses = ['45.1.1.1', '45.1.1.2', '45.1.2.1', '46.1.1.1', '46.1.2.1', '']
  const isKept = async (steps: readonly { which: number; isAsking: boolean }[]): Promise<boolean> => {
    const slots = new FairSlots({ max, waitingMax: 1000 })
    const clients = addresses.map((name) => ({ name, held: [] as Release[], waiting: 0 }))
    for (const { which, isAsking } of steps) {
      const client = clients[which]
      if (client !== undefined && isAsking) {
        client.waiting += 1
        void taken(slots, client.name).then((slot) => {
          client.waiting -= 1
          client.held.push(slot)
        })
      } else client?.held.shift()?.()
      await new Promise((resolve) => setImmediate(resolve))
      for (const { name, held, waiting } of clients) {
        if (name !== '' && held.length > max / 2) return false
        if (waiting > 0 && !slots.isFull(name)) return false
      }
    }
    return true
  }
  const steps = fc.array(fc.record({ which: fc.nat(addresses.length - 1), isAsking: fc.boolean() }), {
    maxLength: 100,
  })
  await fc.assert(fc.asyncProperty(steps, isKept))
})

import { createHash } from 'node:crypto'
import t, { type Test } from 'tap'
import { isRefusal, refuse } from '../../../src/format/refusal.js'
import { type BundleRecord, Bundles } from '../../../src/upload/bundling/bundle-records.js'
import type { AcceptedItem } from '../../../src/upload/records/uploads.js'
import { StoredKeys } from '../../../src/upload/stored/stored-keys.js'
import { Takeovers } from '../../../src/upload/stored/takeovers.js'
import { madeItem } from '../../conformance/kept-uploads.js'
import { lastingObjects } from '../../engines/memory-objects.js'
import { eventually } from '../../eventually.js'
import { scratch } from '../../scratch.js'
import { groupsOf, type MachineOptions, release, type StoringMachine, storingMachine } from '../stored-rig.js'

/** What is known of machines that are gone: by the test. */
interface Watched extends MachineOptions {
  readonly gone: Set<string>
  readonly taken: { items: number }
}

function watching(node: string): Watched {
  const gone = new Set<string>()
  const taken = { items: 0 }
  const takeover = {
    gone: async () => [...gone],
    answerMs: 1000,
    onAdopted: (items: number) => {
      taken.items += items
    },
    close: async () => undefined,
  }
  return { node, takeover, gone, taken, lookMs: 100, adoptMs: 500 }
}

const never = new AbortController().signal

const waiting = ({ uploads }: StoringMachine): readonly string[] => uploads.oldest(1000)
async function accepted(
  t: Test,
  machine: StoringMachine,
  count: number,
): Promise<ReturnType<typeof madeItem>[]> {
  const items = Array.from({ length: count }, () => madeItem(3000))
  t.ok((await Promise.all(items.map((item) => machine.accept(item)))).every(Boolean))
  return items
}

t.test('uploads of a machine that is killed are taken over, and it goes on under another name', async (t) => {
  const objects = lastingObjects()
  const folder = scratch('left')
  const first = await storingMachine(objects, { ...watching('one'), folder })
  const items = await accepted(t, first, 20)
  const packed = items[0] as (typeof items)[0]
  first.uploads.environment.write(() => {
    const item = first.uploads.find(packed.id)
    if (item === undefined) return
    first.uploads.unqueue(item)
    first.uploads.put({ ...item, bundle: packed.id, offset: 0 })
  })
  await first.end()
  const rules = watching('two')
  const second = await storingMachine(objects, rules)
  t.teardown(() => second.end())
  const own = await accepted(t, second, 3)
  rules.gone.add('one')
  await eventually('all is taken over', () => rules.taken.items === items.length)
  t.equal(waiting(second).length, items.length + own.length)
  for (const { id, bytes } of items) {
    const item = second.uploads.find(id)
    t.ok(item !== undefined && second.bytesAt(item.place).equals(bytes))
  }

  const left: boolean[] = []
  const leaveSales = async (isLost: (group: string) => boolean): Promise<void> => {
    // Of the groups from before, and of those under the next name.
    const groups = groupsOf(objects).map((key) => key.slice(key.lastIndexOf('/') + 1))
    left.push(...groups.filter((group) => group.endsWith('-one')).map(isLost), isLost(`${groups[0]}--1`))
  }
  const back = await storingMachine(objects, { ...watching('one'), folder, leaveSales })
  t.teardown(() => back.end())
  t.same(new Set(left.slice(0, -1)), new Set([true]), 'sales of these groups end here')
  t.equal(left.at(-1), false)
  t.strictSame(waiting(back), [], 'it packs none of them')
  t.equal(back.uploads.find(packed.id)?.bundle, packed.id, 'what is in a bundle of its own stays')
  const [item] = await accepted(t, back, 1)
  const group = item && back.uploads.find(item.id)?.stored
  t.match(group, /-one--1$/, 'it has another name')
  await eventually(
    'what stays is put under it',
    () => back.uploads.find(packed.id)?.stored?.endsWith('-one--1') === true,
  )
  release(second, [...items, ...own])
  await eventually('groups that are over are removed', () =>
    groupsOf(objects).every((key) => key.endsWith('-one--1')),
  )
})

t.test('what was packed and not posted is left to the machine that took it over', async (t) => {
  const objects = lastingObjects()
  const folder = scratch('packed')
  const first = await storingMachine(objects, { ...watching('one'), folder })
  const items = await accepted(t, first, 4)
  const ids = items.map(({ id }) => id)
  const [bundle] = ids as [(typeof ids)[0]]
  const rows = items.slice(0, 3).map(({ id }) => first.uploads.find(id) as AcceptedItem)
  const record: BundleRecord = {
    id: bundle,
    state: 'packed',
    transaction: {},
    sizeBytes: 3,
    items: rows.map(({ id }) => id),
    anchorHeight: 1,
    createdMs: 1,
    attempts: 0,
    dueMs: 1,
  }
  new Bundles(first.uploads.environment, first.uploads).pack(record, rows, [0, 1, 2])
  await first.end()
  const rules = watching('two')
  const second = await storingMachine(objects, rules)
  rules.gone.add('one')
  await eventually('all is taken over', () => rules.taken.items === items.length)
  const again = watching('one')
  const back = await storingMachine(objects, { ...again, folder })
  t.teardown(() => back.end())
  t.equal(await back.stored.isTakenOver(record.items), true, 'also when no group is on the rows any more')
  const [own] = await accepted(t, back, 1)
  t.equal(await back.stored.isTakenOver(own ? [own.id] : []), false)
  // Meanwhile they are kept: the transaction may be in a block.
  await eventually('they are put under the other name', () =>
    record.items.every((id) => back.uploads.find(id)?.stored?.endsWith('-one--1') === true),
  )
  const { left } = new Bundles(back.uploads.environment, back.uploads).drop(record, 'none has it')
  t.same(new Set(left.map(({ id }) => id)), new Set(record.items), 'their bytes are needed no more')
  t.strictSame(waiting(back), own ? [own.id] : [], 'they are not packed again')
  t.equal(waiting(second).length, items.length)
  await eventually(
    'they are removed under the other name',
    () => groupsOf(objects).filter((key) => key.endsWith('-one--1')).length === 1,
  )
  t.ok(
    groupsOf(objects).some((key) => key.endsWith('-one')),
    'and what the second has stays',
  )
  // It gets them back where the second one is gone.
  await second.end(true)
  again.gone.add('two')
  await eventually('they wait here', () => waiting(back).length === items.length + 1)
})

t.test('what is in a bundle is its own again when the machine that took it over is gone', async (t) => {
  const objects = lastingObjects()
  const folder = scratch('returned')
  const first = await storingMachine(objects, { ...watching('one'), folder })
  const items = await accepted(t, first, 2)
  first.uploads.environment.write(() => {
    for (const { id } of items) {
      const item = first.uploads.find(id) as AcceptedItem
      first.uploads.unqueue(item)
      first.uploads.put({ ...item, bundle: id, offset: 0 })
    }
  })
  await first.end()
  const rules = watching('two')
  const second = await storingMachine(objects, rules)
  rules.gone.add('one')
  await eventually('all is taken over', () => rules.taken.items === items.length)
  const again = watching('one')
  const back = await storingMachine(objects, { ...again, folder })
  t.teardown(() => back.end())
  const ids = items.map(({ id }) => id)
  t.equal(await back.stored.isTakenOver(ids), true)
  await second.end(true)
  again.gone.add('two')
  await eventually('nobody else has them', async () => !(await back.stored.isTakenOver(ids)))
})

t.test('a machine that reaches the store is not taken over', async (t) => {
  const objects = lastingObjects()
  const first = await storingMachine(objects, watching('one'))
  t.teardown(() => first.end())
  await accepted(t, first, 2)
  const rules = watching('two')
  const second = await storingMachine(objects, rules)
  t.teardown(() => second.end())
  rules.gone.add('one')
  const before = objects.calls.put
  await eventually('it got more than one question', () => objects.calls.put >= before + 3)
  t.equal(rules.taken.items, 0)
  await accepted(t, first, 1)
  t.equal([...objects.objects.keys()].filter((key) => key.includes('/takeovers/')).length, 0)
})

t.test('one that stood still leaves its uploads while it runs, and what it puts then is found', async (t) => {
  const objects = lastingObjects()
  const first = await storingMachine(objects, watching('one'))
  t.teardown(() => first.end())
  const items = await accepted(t, first, 5)
  // It cannot answer.
  objects.fails = (operation, key) =>
    operation === 'remove' && key.includes('/questions/')
      ? refuse('upstream', 'upstream', 'stopped')
      : undefined
  const rules = watching('two')
  const second = await storingMachine(objects, rules)
  t.teardown(() => second.end())
  rules.gone.add('one')
  await eventually('all is taken over', () => rules.taken.items === items.length)
  await eventually('the first has another name', async () => {
    const item = madeItem(500)
    return (await first.accept(item)) && first.uploads.find(item.id)?.stored?.endsWith('-one--1') === true
  })
  for (const { id } of items) t.equal(first.uploads.find(id)?.released, true, 'it is left to the second')
  // A PUT that hung in the store until now.
  const elsewhere = lastingObjects()
  const third = await storingMachine(elsewhere, watching('one'))
  const [late] = await accepted(t, third, 1)
  await third.end()
  for (const key of groupsOf(elsewhere)) objects.objects.set(key, elsewhere.objects.get(key) as never)
  t.ok(late)
  await eventually('it is taken over, too', () => late && second.uploads.find(late.id))
})

t.test('before it has noticed, a machine that was followed learns it by asking', async (t) => {
  const objects = lastingObjects()
  const folder = scratch('asks')
  const first = await storingMachine(objects, { ...watching('one'), folder, lookMs: 600_000 })
  t.teardown(() => first.end())
  const items = await accepted(t, first, 3)
  const ids = items.map(({ id }) => id)
  t.equal(await first.stored.isTakenOver(ids), false)
  const group = first.uploads.find(ids[0] as (typeof ids)[0])?.stored ?? ''
  t.equal(await first.stored.holds(group), true)
  const { get, list } = objects.calls
  const looks = Array.from({ length: 60 }, () => first.stored.holds(group))
  t.strictSame(new Set(await Promise.all(looks)), new Set([true]))
  t.ok(objects.calls.get - get < 20 && objects.calls.list - list < 20, 'all that wait share a look')
  const rules = watching('two')
  const second = await storingMachine(objects, rules)
  t.teardown(() => second.end())
  rules.gone.add('one')
  await eventually('all is taken over', () => rules.taken.items === items.length)
  t.equal(await second.stored.isTakenOver(ids), false)
  t.equal(await second.stored.holds(group), true)
  t.equal(waiting(first).length, 3)
  objects.fails = () => refuse('upstream', 'upstream', 'away')
  t.equal(await first.stored.isTakenOver(ids), false, 'what was promised is posted')
  t.equal(await second.stored.holds(group), false, 'what is not known is not held')
  objects.fails = () => undefined
  t.equal(await eventually('the store answers', () => first.stored.isTakenOver(ids)), true)
  t.equal(await first.stored.holds(group), false)
  await eventually('it leaves them', () => waiting(first).length === 0)
})

t.test('a look that began before a takeover states nothing to who comes after it', async (t) => {
  const objects = lastingObjects()
  const first = await storingMachine(objects, { ...watching('one'), lookMs: 600_000 })
  t.teardown(() => first.end())
  const [item] = await accepted(t, first, 1)
  const group = (item && first.uploads.find(item.id)?.stored) ?? ''
  const list = objects.list.bind(objects)
  let open = (): void => undefined
  const gate = new Promise<void>((resolve) => {
    open = resolve
  })
  let listed = 0
  objects.list = async (...words) => {
    const page = await list(...words)
    listed += 1
    await gate
    return page
  }
  const before = first.stored.holds(group)
  await eventually('the store has answered', () => listed > 0)
  const secret = Buffer.alloc(32, 7)
  const taken = await new Takeovers(objects, new StoredKeys('p'), secret).take('one', 'two', 1, never)
  t.equal(taken, true)
  const after = first.stored.holds(group)
  open()
  t.equal(await before, true)
  t.equal(await after, false)
})

t.test('of several machines one takes over, and of one that is gone in turn the next', async (t) => {
  const objects = lastingObjects()
  const first = await storingMachine(objects, watching('one'))
  const items = await accepted(t, first, 5)
  await first.end(true)
  const rules = ['two', 'three', 'four'].map(watching)
  const machines = await Promise.all(rules.map((rule) => storingMachine(objects, rule)))
  for (const rule of rules) rule.gone.add('one')
  const sum = (): number => rules.reduce((total, { taken }) => total + taken.items, 0)
  await eventually('they are taken over', () => sum() === items.length)
  const heir = rules.findIndex(({ taken }) => taken.items === items.length)
  t.ok(heir >= 0, 'by one machine')
  await machines[heir]?.end(true)
  const others = rules.filter((_, at) => at !== heir)
  for (const rule of others) rule.gone.add(rules[heir]?.node ?? '')
  await eventually('they are taken over again', () => sum() === 2 * items.length)
  t.ok(others.some(({ taken }) => taken.items === items.length))
  await Promise.all(machines.map((machine, at) => (at === heir ? undefined : machine.end())))
})

t.test('a record that somebody else wrote makes nobody leave anything', async (t) => {
  const objects = lastingObjects()
  const folder = scratch('forged')
  const first = await storingMachine(objects, { ...watching('one'), folder })
  const items = await accepted(t, first, 5)
  await first.end()
  const bytes = Buffer.from(`evil ${'0'.repeat(64)}`)
  const sha256 = createHash('sha256').update(bytes).digest()
  const key = 'p/sluice/uploads/takeovers/one/1'
  const put = await objects.put(key, { sizeBytes: bytes.length, sha256, bytes: () => [bytes] })
  t.notOk(isRefusal(put))
  const again = await storingMachine(objects, { ...watching('one'), folder })
  t.equal(waiting(again).length, items.length)
  await again.end()
  // Its number is used up, and the next one counts.
  const rules = watching('two')
  const second = await storingMachine(objects, rules)
  t.teardown(() => second.end())
  rules.gone.add('one')
  await eventually('it is taken over all the same', () => rules.taken.items === items.length)
})

import { randomBytes } from 'node:crypto'
import t from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { silentLog } from '../../src/actor/log.js'
import { idOfBytes } from '../../src/format/id.js'
import { isRefusal } from '../../src/format/refusal.js'
import { BlockFilter } from '../../src/moderation/block-filter.js'
import { FilteredBlockList } from '../../src/moderation/list.js'
import { ModerationKeeper } from '../../src/moderation/moderation-keeper.js'
import type { Subject } from '../../src/moderation/moderation-messages.js'
import { ModerationStore } from '../../src/moderation/moderation-store.js'
import { fc } from '../property.js'

const someSubject = (): Subject => ({ kind: 'id', key: idOfBytes(randomBytes(32)) })
const ground = { source: 'a list', notes: 'why' }

t.test('the filter has no false negatives', async () => {
  const filter = new BlockFilter()
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 32, maxLength: 32 }), fc.string(), (bytes, name) => {
      filter.addId(bytes)
      filter.addName(name)
      return filter.mayHold(bytes) && filter.mayHoldId(idOfBytes(bytes)) && filter.mayHoldName(name)
    }),
    { numRuns: 2000 },
  )
})

t.test('the filter has few false positives', async (t) => {
  const filter = new BlockFilter()
  for (let count = 0; count < 100_000; count += 1) filter.addId(randomBytes(32))
  let through = 0
  for (let count = 0; count < 20_000; count += 1) {
    if (filter.mayHoldId(idOfBytes(randomBytes(32)))) through += 1
    if (filter.mayHoldName(`name-${count}`)) through += 1
  }
  t.ok(through < 40, `${through} of 40,000`)
})

t.test('a list that was not read yet, or cannot be read, blocks everything', async (t) => {
  const empty = new FilteredBlockList(new BlockFilter(), { has: () => false }, silentLog)
  t.ok(empty.blocksId(idOfBytes(randomBytes(32))))
  t.ok(empty.blocksDigest(randomBytes(32)))
  t.ok(empty.blocksName('name'))
  t.notOk(empty.isReadable)

  const filter = new BlockFilter()
  const id = randomBytes(32)
  filter.addId(id)
  filter.fill()
  let isBroken = true
  const list = new FilteredBlockList(
    filter,
    {
      has: () => {
        if (isBroken) throw new Error('the disk is gone')
        return false
      },
    },
    silentLog,
  )
  t.ok(list.blocksId(idOfBytes(id)))
  t.notOk(list.isReadable)
  isBroken = false
  t.notOk(list.blocksId(idOfBytes(id)))
  t.ok(list.isReadable, 'as soon as it can be read again')
})

t.test('the size of what is blocked by its hash is kept, and forgotten with it', async (t) => {
  const path = `${t.testdir()}/list`
  const ground = { source: 'test', notes: '' }
  const [sized, unsized] = [randomBytes(32), randomBytes(32)]
  const here = new Map([[sized.toString('hex'), 1234]])
  const open = (): { keeper: ModerationKeeper; filter: BlockFilter } => {
    const filter = new BlockFilter()
    const blobSize = (digest: Uint8Array): number | undefined => here.get(Buffer.from(digest).toString('hex'))
    const list = new ModerationStore(path)
    return { keeper: new ModerationKeeper(list, filter, systemClock, silentLog, blobSize), filter }
  }
  const subjectOf = (hash: Buffer): Subject => ({ kind: 'hash', key: hash.toString('base64url') })
  const first = open()
  t.notOk(first.filter.mayHoldSize(1234))
  first.keeper.handle({ kind: 'block', subject: subjectOf(sized), ground, by: 'test' })
  t.ok(first.filter.mayHold(sized))
  t.ok(first.filter.mayHoldSize(1234))
  t.notOk(first.filter.mayHoldSize(1235))
  await first.keeper.close()
  here.clear()
  const second = open()
  t.notOk(second.filter.mayHoldSize(1235), 'though the content is gone by now')
  second.keeper.handle({ kind: 'block', subject: subjectOf(unsized), ground, by: 'test' })
  t.ok(second.filter.mayHoldSize(1235), 'one of unknown size may have any')
  for (const hash of [sized, unsized]) {
    second.keeper.handle({ kind: 'release', subject: subjectOf(hash), by: 'test' })
  }
  await second.keeper.close()
  const third = open()
  t.notOk(third.filter.mayHoldSize(1234))
  third.keeper.handle({ kind: 'block', subject: subjectOf(sized), ground, by: 'test' })
  t.ok(third.filter.mayHoldSize(1235), 'what was released is not remembered')
  await third.keeper.close()
})

t.test('entries are listed newest first, in pages, and of one source alone', async (t) => {
  const store = new ModerationStore(`${t.testdir()}/list`)
  t.teardown(() => store.close())
  const subjects = Array.from({ length: 10 }, someSubject)
  for (const [at, subject] of subjects.entries()) {
    store.block([subject], { source: at % 2 === 0 ? 'even' : 'odd', notes: `note ${at}` }, 1000 + at)
  }
  const first = store.newest(Number.MAX_SAFE_INTEGER, 4)
  t.strictSame(
    first.map(({ key }) => key),
    subjects
      .slice(6)
      .reverse()
      .map(({ key }) => key),
  )
  const next = store.newest(first.at(-1)?.sequence ?? 0, 100)
  t.equal(next.length, 6)
  t.match(next.at(-1), { key: subjects[0]?.key, source: 'even', notes: 'note 0', blockedAtSeconds: 1000 })
  t.equal(store.newest(Number.MAX_SAFE_INTEGER, 100, 'odd').length, 5)
  t.strictSame(store.counts(), { id: 10, hash: 0, name: 0 })
})

t.test('blocking again renews the reason where that is wished, and counts once', async (t) => {
  const store = new ModerationStore(`${t.testdir()}/list`)
  t.teardown(() => store.close())
  const subject = someSubject()
  t.equal(store.block([subject, subject], ground, 1).length, 1)
  store.block([subject], { source: 'other', notes: 'new' }, 2)
  t.match(store.find(subject), ground)
  store.block([subject], { source: 'other', notes: 'new' }, 3, true)
  t.match(store.find(subject), { source: 'other', notes: 'new', blockedAtSeconds: 3 })
  t.equal(store.newest(Number.MAX_SAFE_INTEGER, 100).length, 1)
  t.equal(store.release([subject, subject]).length, 1)
  t.equal(store.newest(Number.MAX_SAFE_INTEGER, 100).length, 0)
})

t.test(
  'what others write is taken over, also behind what was released, and every order leaves a line',
  async (t) => {
    const path = `${t.testdir()}/list`
    const [mine, others] = [new ModerationStore(path), new ModerationStore(path)]
    const filter = new BlockFilter()
    const earlier = Array.from({ length: 25_000 }, someSubject)
    others.block(earlier, ground, 1)
    const keeper = new ModerationKeeper(mine, filter, systemClock, silentLog)
    const list = new FilteredBlockList(filter, mine, silentLog)
    const blocks = ({ key }: Subject): boolean => list.blocksId(key as never)
    t.ok(earlier.every(blocks), 'all that was there at the start')
    const [one, two] = [someSubject(), someSubject()]
    others.block([one], ground, 1)
    others.release([one])
    others.block([two], ground, 1)
    // Its own order makes the keeper look; without one it does so four times a second.
    const reply = keeper.handle({ kind: 'block', subject: one, ground, by: 'me' })
    t.ok(!isRefusal(reply) && reply.changed)
    t.ok(blocks(one) && blocks(two))
    t.match(mine.audit(1), [{ by: 'me', action: 'block', what: `id ${one.key}`, ...ground }])
    await keeper.close()
    await others.close()
  },
)

import { randomBytes } from 'node:crypto'
import type { Test } from 'tap'
import { type Id, idBytes, idOfBytes } from '../../src/format/id.js'
import type { BlockList, Subject } from '../../src/moderation/moderation-messages.js'
import { fc } from '../property.js'

/** A list with the hands of its operator on it. */
export interface Blocking {
  readonly list: BlockList
  block(subject: Subject): void
  release(subject: Subject): void
}

const someId = (): Id => idOfBytes(randomBytes(32))

/** What every implementation of `BlockList` does. `fresh` makes an empty one. */
export async function conform(t: Test, fresh: () => Blocking): Promise<void> {
  await t.test('an empty list blocks nothing, and can be read', async (t) => {
    const { list } = fresh()
    t.notOk(list.blocksId(someId(), [someId()]))
    t.notOk(list.blocksDigest(randomBytes(32)))
    t.notOk(list.blocksName('name'))
    t.ok(list.isReadable)
    t.notOk(list.mayBlockContent)
  })

  await t.test('what is blocked is blocked at once, by itself and for all that lies in it', async (t) => {
    const { list, block, release } = fresh()
    const [id, other] = [someId(), someId()]
    const before = list.version
    block({ kind: 'id', key: id })
    t.not(list.version, before, 'clear verdicts of before do not count any more')
    t.ok(list.blocksId(id))
    t.ok(list.blocksId(other, [someId(), id]))
    t.notOk(list.blocksId(other, [someId()]))
    t.notOk(list.blocksDigest(idBytes(id)), 'an id is not a hash')
    release({ kind: 'id', key: id })
    t.notOk(list.blocksId(id))
    t.notOk(list.blocksId(other, [id]))
  })

  await t.test('hashes are not ids, names are whole labels', async (t) => {
    const { list, block } = fresh()
    const digest = randomBytes(32)
    block({ kind: 'name', key: 'first' })
    t.notOk(list.mayBlockContent, 'a name is no content')
    block({ kind: 'hash', key: digest.toString('base64url') })
    t.ok(list.mayBlockContent)
    t.ok(list.blocksDigest(digest))
    t.notOk(list.blocksId(idOfBytes(digest)))
    block({ kind: 'name', key: 'name' })
    t.ok(list.blocksName('name'))
    for (const label of ['a_name', 'names', 'nam', '', 'NAME']) t.notOk(list.blocksName(label), label)
  })

  await t.test(
    'whatever is blocked and released in whatever order, the list is that of a plain set',
    async () => {
      const subjects: Subject[] = Array.from({ length: 6 }, (_, at) => {
        if (at > 3) return { kind: 'name', key: `name-${at}` }
        return { kind: at > 1 ? 'hash' : 'id', key: someId() }
      })
      const isListed = (list: BlockList, { kind, key }: Subject): boolean => {
        if (kind === 'name') return list.blocksName(key)
        return kind === 'id' ? list.blocksId(key as Id) : list.blocksDigest(Buffer.from(key, 'base64url'))
      }
      const step = fc.tuple(fc.constantFrom(...subjects), fc.boolean())
      fc.assert(
        fc.property(fc.array(step, { maxLength: 20 }), (steps) => {
          const { list, block, release } = fresh()
          const model = new Set<Subject>()
          for (const [subject, blocks] of steps) {
            if (blocks) block(subject)
            else release(subject)
            if (blocks) model.add(subject)
            else model.delete(subject)
            for (const one of subjects) if (isListed(list, one) !== model.has(one)) return false
          }
          return true
        }),
        { numRuns: 30 },
      )
    },
  )
}

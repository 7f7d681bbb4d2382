/** What every way to share lists between programs must pass: on one disk, and over the database of a cluster. */
import { randomBytes } from 'node:crypto'
import type { Test } from 'tap'
import { idOfBytes } from '../../src/format/id.js'
import type { Subject } from '../../src/moderation/moderation-messages.js'
import type { ModerationStore } from '../../src/moderation/moderation-store.js'
import type { LocalRegistry } from '../../src/names/local-registry.js'
import { parseName } from '../../src/names/name.js'
import type { Name } from '../../src/names/names-port.js'
import { eventually } from '../eventually.js'

/** One of those who share: its lists as a program of its own opens them. */
export interface Sharer {
  readonly blocks: ModerationStore
  readonly names: LocalRegistry
}

const ground = { source: 'court', notes: 'order 12/26' }
const someId = () => idOfBytes(randomBytes(32))
const named = (text: string): Name => parseName(text) as Name

/** `one` and `other` share; `settled` resolves when what both have changed so far is on both. */
export async function conformSharedList(
  t: Test,
  open: () => Promise<{ readonly one: Sharer; readonly other: Sharer; settled(): Promise<void> }>,
): Promise<void> {
  const { one, other, settled } = await open()

  await t.test('a block and its release are seen by the other, with reason and time', async (t) => {
    const subjects: Subject[] = [
      { kind: 'id', key: someId() },
      { kind: 'hash', key: someId() },
      { kind: 'name', key: 'bücher_site' },
    ]
    one.blocks.block(subjects, ground, 1_700_000_000, true)
    await settled()
    for (const subject of subjects) {
      const { source, notes, blockedAtSeconds } = other.blocks.find(subject) ?? {}
      t.strictSame({ source, notes, blockedAtSeconds }, { ...ground, blockedAtSeconds: 1_700_000_000 })
    }
    other.blocks.release(subjects.slice(0, 1))
    await settled()
    t.strictSame(
      subjects.map((subject) => one.blocks.find(subject) !== undefined),
      [false, true, true],
    )
    one.blocks.block(subjects.slice(0, 1), ground, 1_700_000_009, true)
    await settled()
    t.ok(other.blocks.find(subjects[0] as Subject), 'blocked again')
  })

  await t.test('a list of thousands', async (t) => {
    const subjects = Array.from({ length: 2500 }, (): Subject => ({ kind: 'id', key: someId() }))
    one.blocks.block(subjects, { source: 'list', notes: '' }, 1_700_000_000)
    await settled()
    t.notOk(subjects.some((subject) => other.blocks.find(subject) === undefined))
  })

  await t.test('names, removed names and rights', async (t) => {
    const [id, later] = [someId(), someId()]
    one.names.set([
      [named('site'), { id, ttlSeconds: 60 }],
      [named('docs_site'), { id, ttlSeconds: 60 }],
    ])
    one.names.grant({ name: 'site', address: '0xAbCd' })
    await settled()
    t.strictSame(other.names.get(named('docs_site')), { id, ttlSeconds: 60 })
    t.same(
      other.names.under('site').map(({ full }) => full),
      ['docs_site', 'site'],
    )
    t.ok(other.names.maySet(named('docs_site'), ['0xABCD']))
    other.names.set([[named('site'), { id: later, ttlSeconds: 30 }]])
    other.names.remove(named('docs_site'))
    other.names.revoke({ name: 'site', address: '0xabcd' })
    await settled()
    t.strictSame(one.names.get(named('site')), { id: later, ttlSeconds: 30 })
    t.equal(one.names.get(named('docs_site')), undefined)
    t.notOk(one.names.maySet(named('site'), ['0xabcd']))
  })

  await t.test('an order that was carried out at one is old at the other', async (t) => {
    const signedMs = Date.now() + 1000
    const record = { id: someId(), ttlSeconds: 60 }
    t.equal(await one.names.setSigned({ name: named('signed'), record, signedMs }), 'set')
    await settled()
    t.equal(await other.names.setSigned({ name: named('signed'), record, signedMs }), 'older')
    one.names.remove(named('signed'))
    await settled()
    t.equal(await other.names.setSigned({ name: named('signed'), record, signedMs }), 'older', 'also removed')
  })

  await t.test('the operator goes over a wallet whose clock is ahead', async (t) => {
    const [wallets, operators] = [someId(), someId()]
    const record = { id: wallets, ttlSeconds: 60 }
    await one.names.setSigned({ name: named('ahead'), record, signedMs: Date.now() + 60_000 })
    await settled()
    other.names.set([[named('ahead'), { id: operators, ttlSeconds: 60 }]])
    await settled()
    t.equal(one.names.get(named('ahead'))?.id, operators)
  })

  await t.test('both change the same at the same moment: they end alike', async (t) => {
    const subject: Subject = { kind: 'id', key: someId() }
    const signedMs = Date.now()
    for (const [at, { blocks, names }] of [one, other].entries()) {
      blocks.block([subject], { source: `source ${at}`, notes: '' }, 1_700_000_000 + at, true)
      await names.setSigned({
        name: named('both'),
        record: { id: someId(), ttlSeconds: at },
        signedMs: signedMs + at,
      })
    }
    await eventually('both are alike', async () => {
      await settled()
      const states = [one, other].map(({ blocks, names }) => {
        const { sequence: _, ...block } = blocks.find(subject) ?? {}
        return JSON.stringify([block, names.get(named('both'))])
      })
      return states[0] === states[1]
    })
    t.equal(one.names.get(named('both'))?.ttlSeconds, 1, 'the later order counts')
  })
}

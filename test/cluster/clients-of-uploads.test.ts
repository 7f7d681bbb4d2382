/** Calls of the cluster's database on behalf of clients: one with many requests keeps nobody else waiting. */
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { PostgresUploads } from '../../src/cluster/postgres-uploads.js'
import type { UploadFacts, UploadPart } from '../../src/cluster/upload-rows.js'
import { PostgresSessions } from '../../src/ledger/postgres-session.js'
import { postgresAbsent } from '../engines/two-machines.js'
import { emptyEngines } from './parts-rig.js'

const [busy, honest] = ['198.51.100.1', '203.0.113.9']

function factsOf(client: string): UploadFacts {
  const due = { kind: 0, dueMs: Date.now() + 60_000, takes: true, ordered: false, owes: false }
  return { body: JSON.stringify({ client }), ...due, client, paid: false }
}

const partAt = (start: number): UploadPart => ({ start, size: 1, object: `object-${start}` })

t.test('calls of uploads in parts on behalf of clients', postgresAbsent, async (t) => {
  const { url } = await emptyEngines(t)
  const uploads = new PostgresUploads(url, randomUUID(), systemClock)
  const holder = new PostgresSessions(url, 1, 10_000)
  t.teardown(() => Promise.all([uploads.close(), holder.close()]))
  t.ok(await uploads.insert('one', factsOf(busy)))
  t.ok(await uploads.insert('two', factsOf(honest)))

  await t.test('hundreds of parts leave connections to lookups, claims and other clients', async (t) => {
    const done: string[] = []
    let parts: Promise<unknown>[] = []
    await holder.transaction('BEGIN', async (ask) => {
      await ask("SELECT id FROM cluster_uploads WHERE id = 'one' FOR UPDATE")
      // None of them can go on: each waits for the row.
      parts = Array.from({ length: 100 }, (_, at) =>
        uploads.addPart('one', partAt(at), 0, Date.now(), busy).then(() => done.push('part')),
      )
      t.match(await uploads.load('two', 0, -1), { id: 'two', version: 1 })
      t.equal(await uploads.load('three', 0, -1), undefined)
      t.equal(await uploads.claim('two'), 1)
      t.ok(await uploads.release('two', 1, undefined))
      parts.push(uploads.update('two', 1, factsOf(honest)).then(() => done.push('honest')))
    })
    await Promise.all(parts)
    const place = done.indexOf('honest')
    t.ok(place >= 0 && place < 20, `the other client's change came after ${place} of 100 parts`)
  })

  await t.test('lookups that come at the same time each get their own answer', async (t) => {
    const strangers = Array.from({ length: 300 }, () => uploads.load(randomUUID(), 0, -1))
    const [all, later, other, cut] = await Promise.all([
      uploads.load('one', 0, -1),
      uploads.load('one', 0, 97),
      uploads.load('two', 0, -1),
      uploads.load('one', 7, 97),
    ])
    t.equal(all?.parts.length, 100)
    t.strictSame(later?.parts, all?.parts.slice(97), 'parts after those that are known')
    t.strictSame(other?.parts, [])
    t.strictSame(cut?.parts, all?.parts, 'what is known of another cut is not known')
    t.strictSame(new Set(await Promise.all(strangers)), new Set([undefined]))
  })
})

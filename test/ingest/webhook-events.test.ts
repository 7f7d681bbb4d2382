/** Events wait on disk, as many as their number permits: so none of them may be large. */
import t from 'tap'
import type { Id } from '../../src/format/id.js'
import { type Tag, tagOf } from '../../src/format/tag.js'
import type { FilterSubject } from '../../src/ingest/filter.js'
import { cachedEvent, indexedEvent } from '../../src/ingest/webhook-events.js'

const id = 'a'.repeat(43) as Id

function eventWith(tags: readonly Tag[]) {
  const none = new Uint8Array(0)
  const subject = {
    id,
    owner: none,
    target: none,
    anchor: none,
    tags,
    sizeBytes: 1,
  } as unknown as FilterSubject
  const { body } = indexedEvent(subject, 7)
  return { bytes: body.length, data: JSON.parse(Buffer.from(body).toString()).data }
}

t.test('an event states all tags that clients of the network accept', async (t) => {
  const tags = Array.from({ length: 128 }, (_, at) => tagOf(`Name-${at}`, '\u0001'.repeat(24)))
  const { data } = eventWith(tags)
  t.equal(data.tags.length, 128)
  t.notOk('tags_omitted' in data)
})

t.test('and of larger ones the first', async (t) => {
  for (const value of ['x'.repeat(500_000), '\u0001'.repeat(30_000), '\u00e9'.repeat(20_000)]) {
    const tags = [tagOf('App-Name', 'first'), tagOf('Large', value), tagOf('Behind', 'it')]
    const { bytes, data } = eventWith(tags)
    t.ok(bytes < 34_000, `${bytes} bytes`)
    t.same(data.tags, [{ name: 'App-Name', value: 'first' }])
    t.equal(data.tags_omitted, 2)
  }
  const many = Array.from({ length: 20_000 }, (_, at) => tagOf(`Name-${at}`, 'v'))
  const { bytes, data } = eventWith(many)
  t.ok(bytes < 34_000)
  t.equal(data.tags.length + data.tags_omitted, many.length)
})

t.test('a type of content that is no type is not stated', async (t) => {
  const { body } = cachedEvent(id, new Uint8Array(32), 1, 'x'.repeat(500_000))
  t.ok(body.length < 1000)
  t.match(Buffer.from(cachedEvent(id, new Uint8Array(32), 1, 'text/css').body).toString(), /text\/css/)
})

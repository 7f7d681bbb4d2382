/** What waits for the catalog is bounded by its bytes: headers may have half a megabyte of tags. */
import t from 'tap'
import type { Address } from '../../../src/actor/mailbox-address.js'
import type { CatalogReply, CatalogRequest } from '../../../src/catalog/catalog-messages.js'
import { headerMemory } from '../../../src/format/header-memory.js'
import { parseItemHeader } from '../../../src/format/item.js'
import { isRefusal, refuse } from '../../../src/format/refusal.js'
import { tagOf } from '../../../src/format/tag.js'
import { ed25519Signer, signItem } from '../../../src/proof/sign.js'
import { type AnnouncedItem, ItemAnnouncer } from '../../../src/upload/news/item-announcer.js'

function itemWith(tagBytes: number): AnnouncedItem {
  const tags = [tagOf('Large', 'x'.repeat(tagBytes))]
  const bytes = signItem(ed25519Signer(Buffer.alloc(32, 7)), { tags }, Buffer.from('item'))
  const header = parseItemHeader(bytes)
  if (header === 'more' || isRefusal(header)) throw new Error('the item of this test is none')
  return { header, sizeBytes: bytes.length, digest: new Uint8Array(32) }
}

/** An announcer, and the numbers of items in the messages that the catalog took. */
function announcing(takes: () => boolean) {
  const batches: number[] = []
  const ask = async (request: CatalogRequest) => {
    if (!takes()) return refuse('busy', 'self', 'the mailbox is full')
    if (request.kind !== 'all') throw new Error('it announces nothing')
    const [, learn] = request.requests
    batches.push(learn?.kind === 'learn' ? learn.attributes.length : 0)
    return { kind: 'done' } as unknown as CatalogReply
  }
  const closing = new AbortController()
  const keeper = { ask } as unknown as Address<CatalogRequest, CatalogReply>
  return { announcer: new ItemAnnouncer(keeper, closing.signal), batches, closing }
}

const large = itemWith(500_000)
const small = itemWith(10)
const mebibyte = 2 ** 20

t.test('messages have few large headers, and many small ones', async (t) => {
  const { announcer, batches } = announcing(() => true)
  await Promise.all(Array.from({ length: 60 }, () => announcer.announce(large)))
  t.equal(
    batches.reduce((all, one) => all + one, 0),
    60,
  )
  const most = Math.max(...batches) * headerMemory(large.header)
  t.ok(most < 8 * mebibyte + headerMemory(large.header), `${most} bytes`)
  batches.length = 0
  await Promise.all(Array.from({ length: 600 }, () => announcer.announce(small)))
  t.same(batches, [256, 256, 88])
})

t.test('what waits is full by bytes, or by number, and is counted down again', async (t) => {
  for (const item of [large, small]) {
    let takes = false
    const { announcer } = announcing(() => takes)
    const max = Math.min(4096, Math.ceil((64 * mebibyte) / headerMemory(item.header)))
    const waiting: Promise<void>[] = []
    for (let at = 0; at < max; at += 1) {
      if (announcer.isFull) throw new Error(`it is full with ${at} items`)
      waiting.push(announcer.announce(item))
    }
    t.ok(announcer.isFull, `with ${max} items`)
    takes = true
    await Promise.all(waiting)
    t.notOk(announcer.isFull)
    const again = Array.from({ length: max - 1 }, () => announcer.announce(item))
    t.notOk(announcer.isFull, 'nothing is left of those before')
    await Promise.all(again)
  }
})

t.test('at the end nothing waits any more', async (t) => {
  const { announcer, closing } = announcing(() => false)
  const waiting = Array.from({ length: 200 }, () => announcer.announce(large))
  t.ok(announcer.isFull)
  closing.abort()
  await Promise.all(waiting)
  t.notOk(announcer.isFull)
})

/** Bundles that are about to be paid for are listed in turns of the clients that brought them. */
import { randomBytes } from 'node:crypto'
import t from 'tap'
import { silentLog } from '../../../src/actor/log.js'
import { idOfBytes } from '../../../src/format/id.js'
import { SharedSales, type SharedSalesParts } from '../../../src/upload/intake/shared-sales.js'
import type { AcceptedItem } from '../../../src/upload/records/uploads.js'

/** Ids of one statement. */
const portion = 2000

function bundleOf(items: number): AcceptedItem & { readonly items: number } {
  const item = { id: idOfBytes(randomBytes(32)), isBundle: true, items }
  return item as unknown as AcceptedItem & { readonly items: number }
}

t.test('one client with many large bundles keeps no other one waiting', async (t) => {
  let statements = 0
  const statement = async <T>(answer: T): Promise<T> => {
    statements += 1
    await new Promise((resolve) => setTimeout(resolve, 1))
    return answer
  }
  const items: SharedSalesParts['items'] = {
    beginSale: () => statement('1'),
    addToSale: () => statement(true),
    renewSales: (bundles) => statement(new Set(bundles)),
    endSales: () => statement(true),
    sweepSales: async () => false,
  }
  const scan = {
    async *idsIn(item: object) {
      for (let left = (item as { items: number }).items; left > 0; left -= portion)
        yield { ids: Array.from({ length: Math.min(left, portion) }, () => Buffer.alloc(32)) }
    },
  } as unknown as SharedSalesParts['scan']
  const none = { find: () => undefined, unlisted: { has: () => false } }
  const sales = new SharedSales({
    uploads: none as unknown as SharedSalesParts['uploads'],
    sales: { open: () => [] } as unknown as SharedSalesParts['sales'],
    scan,
    items,
    logger: silentLog,
    closing: new AbortController().signal,
  })
  const many = Array.from({ length: 24 }, () => sales.list(bundleOf(10 * portion), '198.51.100.1'))
  for (let turns = 0; turns < 5; turns += 1) await statement(undefined)
  const before = statements
  t.ok(await sales.list(bundleOf(3), '203.0.113.9'))
  const during = statements - before
  t.ok(during <= 12, `${during} statements, of which 4 are its own`)
  t.strictSame(new Set(await Promise.all(many)), new Set([true]))
})

import t from 'tap'
import { localAddress } from '../../src/actor/mailbox-address.js'
import type { CatalogReply, CatalogRequest } from '../../src/catalog/catalog-messages.js'
import { idBytes, parseId } from '../../src/format/id.js'
import { optimisticOrder } from '../../src/routes/admin/optimistic-order.js'
import type { OrderAnswer } from '../../src/routes/admin/order.js'
import { fixtureJson } from '../fixture-file.js'
import { l1House } from '../parquet/l1-chain.js'

const id = '8V0K0DltgqPzBDa_FYyOdWnfhSngRj7ORH0lnOeqChw'

t.test('transactions are announced by their headers, where that is switched on', async (t) => {
  const house = l1House(t)
  const keeper = localAddress<CatalogRequest, CatalogReply>((message) => house.keeper.handle(message))
  const ask = async (body: unknown, isEnabled = true): Promise<OrderAnswer> => {
    const order = optimisticOrder({ keeper, index: house.index, isEnabled })
    return order.act({ body, rest: '', query: new URLSearchParams(), by: 'a test' })
  }
  const header = fixtureJson<Record<string, unknown>>(`transactions/${id}.json`)
  t.match(await ask(header, false), { status: 403, body: 'Optimistic tx indexing is disabled' })
  const rubbish: [unknown, RegExp | string][] = [
    [undefined, "Must provide 'id'"],
    [[], 'Must provide a transaction header'],
    [{ ...header, signature: 7 }, "Must provide 'signature'"],
    [[header, { ...header, last_tx: undefined }], "Must provide 'last_tx'"],
    [{ ...header, reward: '17' }, /signature/],
    [{ ...header, tags: 'x' }, /tags/],
    [Array(101).fill(header), /Too many/],
  ]
  for (const [body, message] of rubbish) t.match(await ask(body), { status: 400, body: message })
  house.index.refresh()
  t.equal(house.index.counts().rows, 0, 'nothing of them came in')
  const indexed = { status: 200, body: { message: 'Optimistic transaction(s) indexed' } }
  t.same(await ask([header]), indexed)
  house.index.refresh()
  const row = house.index.row(idBytes(parseId(id) ?? (id as never)))
  t.match(row, { height: undefined, isItem: false })
  t.same(await ask(header), indexed, 'again: it is known')
  t.equal(house.index.counts().rows, 1)
})

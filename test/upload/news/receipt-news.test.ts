import t from 'tap'
import { ReceiptNews } from '../../../src/upload/news/receipt-news.js'
import type { Receipt } from '../../../src/upload/records/receipt.js'
import { type AcceptedItem, openUploadTables, Uploads } from '../../../src/upload/records/uploads.js'
import { acceptedItem } from '../accepted-item.js'

function accept(uploads: Uploads, news: ReceiptNews, at: number): void {
  let committed = (): void => undefined
  uploads.accept([acceptedItem(at)], () => {
    committed = news.add([acceptedItem(at).id])
  })
  committed()
}
const receiptOf = (item: AcceptedItem): Receipt => ({ id: item.id }) as Receipt

t.test('a receipt that was given and not told of is told of after a kill, and only then', async (t) => {
  const path = t.testdir()
  /** One life of the service: accepts items, tells of some of them, and ends where it stands. */
  const life = async (
    accepted: readonly number[],
    announced: readonly number[],
  ): Promise<{ atStart: string[]; later: string[] }> => {
    const environment = openUploadTables(path)
    const uploads = new Uploads(environment)
    const heard: string[] = []
    const announce = (receipt: Receipt): void => void heard.push(receipt.id)
    const news = new ReceiptNews({ environment, uploads, announce })
    await news.catchUp(async (item) => receiptOf(item))
    const atStart = heard.splice(0)
    for (const at of accepted) accept(uploads, news, at)
    for (const at of announced) news.announce(receiptOf(acceptedItem(at)), acceptedItem(at))
    await environment.close()
    return { atStart, later: heard }
  }
  const ids = (...numbers: readonly number[]): string[] => numbers.map((at) => acceptedItem(at).id)
  t.strictSame(await life([1, 2, 3], [2]), { atStart: [], later: ids(2) })
  // The last announcement is not recorded yet: it may be repeated.
  t.strictSame((await life([], [])).atStart, ids(1, 2, 3))
  t.strictSame(await life([4], [4]), { atStart: [], later: ids(4) })
  t.strictSame((await life([], [])).atStart, ids(4))
  t.strictSame((await life([], [])).atStart, [])
  const many = Array.from({ length: 150 }, (_, at) => at + 10)
  await life(many, [])
  t.strictSame((await life([], [])).atStart, ids(...many))
})

t.test('what was told is written down with what comes next', async (t) => {
  const environment = openUploadTables(t.testdir())
  const uploads = new Uploads(environment)
  const heard: string[] = []
  const make = (): ReceiptNews =>
    new ReceiptNews({ environment, uploads, announce: ({ id }) => void heard.push(id) })
  const news = make()
  for (let at = 1; at <= 50; at += 1) {
    accept(uploads, news, at)
    news.announce(receiptOf(acceptedItem(at)), acceptedItem(at))
  }
  heard.length = 0
  await make().catchUp(async (item) => receiptOf(item))
  t.strictSame(heard, [acceptedItem(50).id])
  await environment.close()
})

import t from 'tap'
import { silentLog } from '../../src/actor/log.js'
import { faultOfPosted } from '../../src/proof/posted-transaction.js'
import { smallMaxBytes, TransactionJudge } from '../../src/routes/transaction-judge.js'

const text = (bytes: number): string => Buffer.alloc(bytes, 7).toString('base64url')
const posted = (dataBytes: number): Buffer =>
  Buffer.from(
    JSON.stringify({
      format: 2,
      id: text(32),
      last_tx: text(48),
      owner: text(512),
      tags: [],
      target: '',
      quantity: '0',
      data: text(dataBytes),
      data_size: String(dataBytes),
      data_root: text(32),
      reward: '1',
      signature: text(512),
    }),
  )

t.test('a large transaction is judged elsewhere, and this thread goes on', async (t) => {
  const judge = new TransactionJudge(1, silentLog)
  t.teardown(() => judge.close())
  let turns = 0
  const counting = setInterval(() => {
    turns += 1
  }, 1)
  const large = posted(4 << 20)
  const [first, second, third] = [large, large, large].map((body) => judge.faultOf(body))
  t.match(await third, { refused: 'busy' }, 'few wait')
  const wrong = 'Invalid signature: the id is not its SHA-256'
  t.equal(await first, wrong)
  t.equal(await second, wrong)
  clearInterval(counting)
  t.ok(turns > 5, `${turns} turns`)
  t.equal(faultOfPosted(large), wrong)
})

t.test('a small one is judged at once', async (t) => {
  const judge = new TransactionJudge(0, silentLog)
  t.teardown(() => judge.close())
  const small = posted(1000)
  t.ok(small.length < smallMaxBytes)
  const both = await Promise.all([judge.faultOf(small), judge.faultOf(small)])
  t.strictSame(both, [faultOfPosted(small), faultOfPosted(small)])
})

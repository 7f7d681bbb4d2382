import { randomBytes } from 'node:crypto'
import t from 'tap'
import { fixtureLines } from '../fixture-file.js'
import { clientOf, devnetOf, knownWallet } from './posting.js'

const [wallet = knownWallet()] = fixtureLines<ReturnType<typeof knownWallet>>('rsa-4096-keys.ndjson')

t.test('arweave-js stores 3 MB in chunks, sees them confirmed and reads them back', async (t) => {
  const devnet = await devnetOf(t)
  const arweave = clientOf(devnet.url)
  const address = await arweave.wallets.jwkToAddress(wallet)
  t.equal((await arweave.api.get(`mint/${address}/2000000000000`)).data, '2000000000000')
  t.equal(await arweave.wallets.getBalance(address), '2000000000000')

  const data = randomBytes(3_000_000)
  const transaction = await arweave.createTransaction({ data }, wallet)
  transaction.addTag('Content-Type', 'application/x-test')
  await arweave.transactions.sign(transaction, wallet)
  const uploader = await arweave.transactions.getUploader(transaction)
  while (!uploader.isComplete) await uploader.uploadChunk()
  t.equal(uploader.lastResponseStatus, 200)

  t.equal((await arweave.transactions.getStatus(transaction.id)).status, 202, 'pending before the block')
  await arweave.api.get('mine')
  t.match((await arweave.transactions.getStatus(transaction.id)).confirmed, {
    block_height: 1,
    number_of_confirmations: 1,
  })
  await arweave.api.get('mine/3')
  t.match((await arweave.transactions.getStatus(transaction.id)).confirmed, { number_of_confirmations: 4 })

  const got = await arweave.transactions.getData(transaction.id, { decode: true })
  t.ok(data.equals(Buffer.from(got as Uint8Array)), 'getData')
  t.ok(data.equals(await arweave.chunks.downloadChunkedData(transaction.id)), 'downloadChunkedData')
  const read = await arweave.transactions.get(transaction.id)
  t.ok(await arweave.transactions.verify(read), 'the transaction read back verifies')
  t.equal(await arweave.wallets.getLastTransactionID(address), transaction.id)
  t.equal(
    await arweave.wallets.getBalance(address),
    (2_000_000_000_000n - BigInt(transaction.reward)).toString(),
  )
  t.equal((await arweave.blocks.getByHeight(1)).txs[0], transaction.id)
  t.equal((await arweave.blocks.getCurrent()).height, 4)
})

t.test('arweave-js posts small data inline and sends winston', async (t) => {
  const devnet = await devnetOf(t)
  const arweave = clientOf(devnet.url)
  const other = await arweave.wallets.jwkToAddress(knownWallet())
  devnet.mint(await arweave.wallets.jwkToAddress(wallet), 10n ** 12n)

  const small = await arweave.createTransaction({ data: 'hello' }, wallet)
  await arweave.transactions.sign(small, wallet)
  t.equal((await arweave.transactions.post(small)).status, 200)
  const gift = await arweave.createTransaction({ target: other, quantity: '5000' }, wallet)
  await arweave.transactions.sign(gift, wallet)
  t.equal((await arweave.transactions.post(gift)).status, 200)
  t.equal((await arweave.api.post('tx', gift)).status, 208, 'posted twice')
  devnet.mine()

  t.equal(await arweave.transactions.getData(small.id, { decode: true, string: true }), 'hello')
  t.equal(await arweave.wallets.getBalance(other), '5000')
  t.match((await arweave.transactions.getStatus(gift.id)).confirmed, { block_height: 1 })
})

/** The gateway in the place of a node: chunks by weave offset, and a public client library that posts and reads through it. */
import { randomBytes } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { validatePath } from 'arweave/node/lib/merkle.js'
import t, { type Test } from 'tap'
import { verifiedByFirst, verifiedBySecond } from '../attest/verifiers.js'
import { clientOf, knownWallet } from '../devnet/posting.js'
import { run } from '../flow/running.js'

const replay = fileURLToPath(new URL('../../../test/fixture/replay', import.meta.url))

async function stage(t: Test, environment: Record<string, string> = {}) {
  const running = await run(t, t.testdir(), { SERVICES: 'gateway', DEVNET_BLOCK_MS: '0', ...environment })
  const { gateway = '', devnet: node = '' } = running.urls
  const arweave = clientOf(gateway)
  return { gateway, node, arweave }
}

interface ChunkJson {
  readonly chunk: string
  readonly data_path: string
  readonly tx_path: string
  readonly packing: string
}

async function signatureHolds(answer: Response): Promise<boolean> {
  const { status, url } = answer
  const exchange = { method: 'GET', url, status, fields: [...answer.headers] }
  return (await verifiedByFirst(exchange)) && (await verifiedBySecond(exchange))
}

const bytesOf = (text: string): Buffer => Buffer.from(text, 'base64url')

t.test('a client of nodes posts 3 MB through the gateway and reads every chunk back by offset', async (t) => {
  const { gateway, node, arweave } = await stage(t)
  const wallet = knownWallet()
  const address = await arweave.wallets.jwkToAddress(wallet)
  await fetch(`${node}/mint/${address}/1000000000000000`)
  // Its rest is too short for a chunk: the last two share what is left.
  const data = randomBytes(2_890_000)
  const transaction = await arweave.createTransaction({ data }, wallet)
  transaction.addTag('Content-Type', 'application/x-test')
  await arweave.transactions.sign(transaction, wallet)
  const uploader = await arweave.transactions.getUploader(transaction)
  while (!uploader.isComplete) await uploader.uploadChunk()
  t.equal(uploader.lastResponseStatus, 200)
  t.equal((await arweave.transactions.getStatus(transaction.id)).status, 202, 'pending before the block')
  await fetch(`${node}/mine/2`)

  const { offset, size } = await arweave.chunks.getTransactionOffset(transaction.id)
  const start = Number(offset) - Number(size) + 1
  const read: Buffer[] = []
  for (let at = 0; at < data.length; ) {
    const answer = await fetch(`${gateway}/chunk/${start + at}`)
    t.equal(answer.status, 200)
    const json = (await answer.json()) as ChunkJson
    t.ok(await signatureHolds(answer), 'signed')
    const header = (name: string): string | null => answer.headers.get(`x-chain-chunk-${name}`)
    const root = bytesOf(transaction.data_root)
    const proven = await validatePath(root, at, 0, data.length, bytesOf(json.data_path))
    if (proven === false) throw new Error('arweave-js does not accept the path')
    t.equal(proven.chunkSize, bytesOf(json.chunk).length)
    t.equal(header('data-root'), transaction.data_root)
    t.equal(header('tx-id'), transaction.id)
    t.equal(header('relative-start-offset'), String(at))
    read.push(bytesOf(json.chunk))
    const raw = await fetch(`${gateway}/chunk/${start + at + 7}/data`)
    t.ok(bytesOf(json.chunk).equals(Buffer.from(await raw.arrayBuffer())), 'the same bytes raw')
    t.equal(raw.headers.get('x-chain-chunk-read-offset'), '7')
    t.equal(raw.headers.get('x-chain-chunk-start-offset'), String(start + at))
    t.equal(raw.headers.get('x-chain-chunk-tx-start-offset'), String(start))
    t.equal(raw.headers.get('x-chain-chunk-data-path'), json.data_path)
    at += bytesOf(json.chunk).length
  }
  t.ok(Buffer.concat(read).equals(data), 'all chunks together are the data')

  t.ok(data.equals(Buffer.from(await arweave.chunks.downloadChunkedData(transaction.id))), 'downloaded')
  const got = await arweave.transactions.getData(transaction.id, { decode: true })
  t.ok(data.equals(Buffer.from(got as Uint8Array)), 'getData')
  t.match((await arweave.transactions.getStatus(transaction.id)).confirmed, { block_height: 1 })
  t.ok(await arweave.transactions.verify(await arweave.transactions.get(transaction.id)), 'the header')
  const balance = await (await fetch(`${node}/wallet/${address}/balance`)).text()
  t.equal(await arweave.wallets.getBalance(address), balance)
  t.equal((await arweave.blocks.getByHeight(1)).txs[0], transaction.id)
  t.equal((await arweave.network.getInfo()).height, 2)
})

t.test('real chunks are served with proofs that lead to what their owner signed', async (t) => {
  const { gateway, arweave } = await stage(t, { DEVNET_REPLAY_PATH: replay, EDGE_THREADS: '1' })
  const id = '----LT69qUmuIeC4qb0MZHlxVp7UxLu_14rEkA_9n6w'
  const at = 51_530_681_327_863
  t.equal(
    (await fetch(`${gateway}/chunk/${at}`)).status,
    502,
    'the block that would prove it is not recorded',
  )
  t.equal((await arweave.chunks.getTransactionOffset(id)).offset, '51530681583862')
  const first = await fetch(`${gateway}/chunk/${at}`)
  t.equal(first.status, 200)
  t.equal(first.headers.get('x-chain-chunk-tx-id'), id)
  t.equal(first.headers.get('x-cache'), 'MISS')
  t.equal(first.headers.get('x-gateway-chunk-source-type'), 'arweave-network')
  t.ok(await signatureHolds(first))
  const { chunk, data_path: path } = (await first.json()) as ChunkJson
  const { data_root: root } = await arweave.transactions.get(id)
  t.not(await validatePath(bytesOf(root), 0, 0, 256_000, bytesOf(path)), false, 'by arweave-js')
  const last = await fetch(`${gateway}/chunk/51530681583862/data`)
  t.equal(last.headers.get('x-cache'), 'HIT')
  t.equal(last.headers.get('x-gateway-chunk-source-type'), 'cache')
  t.equal(last.headers.get('x-chain-chunk-read-offset'), '255999')
  t.ok(bytesOf(chunk).equals(Buffer.from(await last.arrayBuffer())))
  t.ok(await signatureHolds(last))
  t.equal((await fetch(`${gateway}/chunk/51530681583863`)).status, 404, 'the byte behind it')
  t.equal((await fetch(`${gateway}/chunk/99999999999999`)).status, 404, 'beyond the weave')
})

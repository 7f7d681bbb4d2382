import { createHash } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { RemoteChain } from '../../src/chain/remote-chain.js'
import { Devnet } from '../../src/devnet/devnet.js'
import { parseId } from '../../src/format/id.js'
import { isRefusal } from '../../src/format/refusal.js'
import { patient } from '../chain/hostile.js'
import { jsonOf } from './posting.js'

const folder = fileURLToPath(new URL('../../../test/fixture/replay', import.meta.url))
const stored = parseId('----LT69qUmuIeC4qb0MZHlxVp7UxLu_14rEkA_9n6w')!
const inBlock = parseId('vYQNQruccPlvxatkcRYmoaVywIzHxS3DuBG1CPxNMPA')!
const genesis = parseId('-M5_EBM4MayX8ZpuLFoANHO00c4pdrSmAQbPYv7fq4U')!

t.test('a folder of real records is served as a node serves them', async (t) => {
  const devnet = await Devnet.start({
    host: '127.0.0.1',
    port: 0,
    dataPath: '',
    blockMs: 0,
    replayPath: folder,
  })
  t.teardown(() => devnet.stop())
  const chain = new RemoteChain({ ...patient, nodes: [devnet.url] }, systemClock)
  t.teardown(() => chain.close())
  const get = (path: string) => fetch(devnet.url + path)

  t.equal(await chain.height(), 982_575)
  t.match(await chain.info(), { height: 982_575, network: 'sluice.replay' })
  const tip = await chain.currentBlock()
  t.match(tip, { height: 982_575, weaveSize: 90_764_323_102_966, blockSize: 2_097_152 })
  if (!isRefusal(tip)) t.same(await chain.blockByHash(tip.hash), tip)
  const second = await chain.blockByHeight(2)
  t.match(second, { height: 2, previous: (await jsonOf(`${devnet.url}/block/height/1`)).indep_hash })
  t.match(await chain.blockByHeight(4), { refused: 'unknown' })

  t.same(await chain.transactionStatus(inBlock), {
    kind: 'mined',
    height: 982_575,
    block: isRefusal(tip) ? '' : tip.hash,
    confirmations: 1,
  })
  t.match(await chain.transactionStatus(stored), { refused: 'unknown' }, 'its block is not in the folder')
  t.match(await chain.transactionStatus(genesis), { kind: 'mined', height: 0 })
  t.equal((await jsonOf(`${devnet.url}/tx/${inBlock}`)).id, inBlock)

  const offset = await chain.transactionOffset(stored)
  t.same(offset, { size: 256_000, start: 51_530_681_327_863, end: 51_530_681_583_862 })
  const first = await chain.chunk(51_530_681_327_863)
  const middle = await chain.chunk(51_530_681_400_000)
  t.same(middle, first, 'any byte of a chunk finds it')
  t.match(await chain.chunk(51_530_681_583_863), { refused: 'unknown' }, 'the byte behind it does not')
  if (!isRefusal(first)) {
    const hash = createHash('sha256').update(first.chunk).digest()
    t.same(first.dataPath.subarray(-64, -32), hash, 'the proof speaks of this chunk')
  }
  const flow = await chain.transactionData(stored, 256_000)
  t.notOk(isRefusal(flow))
  const pieces: Uint8Array[] = []
  if (!isRefusal(flow)) for await (const piece of flow.bytes) if (!isRefusal(piece)) pieces.push(piece)
  t.same(Buffer.concat(pieces), isRefusal(first) ? null : Buffer.from(first.chunk))
  t.equal(await (await get(`/tx/${genesis}/data`)).text(), 'Z3V5cyE')
  t.equal(await (await get(`/tx/${genesis}/data.txt`)).text(), 'guys!')
})

t.test('a replayed chain is read-only', async (t) => {
  const devnet = await Devnet.start({
    host: '127.0.0.1',
    port: 0,
    dataPath: '',
    blockMs: 0,
    replayPath: folder,
  })
  t.teardown(() => devnet.stop())
  t.equal((await fetch(`${devnet.url}/tx`, { method: 'POST', body: '{}' })).status, 405)
  t.equal((await fetch(`${devnet.url}/mine`)).status, 400)
  t.throws(() => devnet.mine())
})

t.test('a folder that is no replay folder stops the start', async (t) => {
  await t.rejects(
    Devnet.start({ host: '127.0.0.1', port: 0, dataPath: '', blockMs: 0, replayPath: '/nowhere' }),
  )
})

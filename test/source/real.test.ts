import { fileURLToPath } from 'node:url'
import t from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { RemoteChain } from '../../src/chain/remote-chain.js'
import { Devnet } from '../../src/devnet/devnet.js'
import { parseId } from '../../src/format/id.js'
import { isRefusal } from '../../src/format/refusal.js'
import { chainSources } from '../../src/source/roots/chain-sources.js'
import type { Source } from '../../src/source/source.js'
import { patient } from '../chain/hostile.js'
import { conform, taken, wantedOf } from '../conformance/source.js'
import { someId } from './rig.js'

const replayPath = fileURLToPath(new URL('../../../test/fixture/replay', import.meta.url))
const never = new AbortController().signal

t.test('records of the real network', async (t) => {
  const devnet = await Devnet.start({ host: '127.0.0.1', port: 0, dataPath: '', blockMs: 0, replayPath })
  t.teardown(() => devnet.stop())
  const chain = new RemoteChain({ ...patient, nodes: [devnet.url], coolMs: 1 }, systemClock)
  t.teardown(() => chain.close())
  const location = { depthMax: 10, headersMax: 100, headerMaxBytes: 1_000_000 }
  const { sources } = chainSources(chain, { aheadMax: 4, concurrencyMax: 8 }, location)
  const [chunks, aware, txData] = sources as [Source, Source, Source]

  await t.test('a transaction of one chunk is proven and served, whole and in windows', async (t) => {
    const id = parseId('----LT69qUmuIeC4qb0MZHlxVp7UxLu_14rEkA_9n6w')!
    const found = await chunks.open(wantedOf(id), never)
    const payload = await taken(found)
    if (isRefusal(payload)) throw new Error(payload.message)
    t.equal(payload.length, 256_000)
    await conform(t, { source: aware, id, payload, proven: true })
  })

  await t.test('a transaction of the first block, whose signature covers its data', async (t) => {
    const id = parseId('-M5_EBM4MayX8ZpuLFoANHO00c4pdrSmAQbPYv7fq4U')!
    const none = await chunks.open(wantedOf(id), never)
    t.equal(isRefusal(none) && none.refused, 'unknown', 'it has no signed data root')
    const found = await txData.open(wantedOf(id), never)
    const payload = await taken(found)
    if (isRefusal(payload)) throw new Error(payload.message)
    t.ok(payload.length > 0)
    t.equal(!isRefusal(found) && found.proven, false, 'its id does not bind where the data begins and ends')
  })

  await t.test(
    'a transaction whose chunks no node has is a failure or unknown, never wrong bytes',
    async (t) => {
      const id = parseId('cK9WF2XMwFj5TF1uhaCSdrA2mVoaxAz20HkDyQhq0i0')!
      t.ok(isRefusal(await taken(await chunks.open(wantedOf(id), never))))
      t.ok(isRefusal(await taken(await aware.open(wantedOf(someId(), { rootId: id }), never))))
    },
  )
})

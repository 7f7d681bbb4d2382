/** The index given away: one gateway publishes, another looks into its bands and serves what it never indexed. */
import { randomBytes } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { encodeBundle } from '../../src/format/bundle.js'
import { bundleItem, bundleTags, item } from '../source/weave.js'
import { payerAt } from './payer.js'
import { run, sluice } from './running.js'

async function until<T>(ask: () => Promise<T | undefined>): Promise<T> {
  for (let tries = 0; tries < 300; tries += 1) {
    const found = await ask()
    if (found !== undefined) return found
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  throw new Error('it does not come to be')
}

interface Said {
  readonly indexes: readonly {
    readonly bands: readonly {
      readonly id: string
      readonly records: number
      readonly http: { readonly baseUrl: string }
    }[]
  }[]
}

t.test('what one gateway indexed, another finds in its bands far away', { timeout: 120_000 }, async (t) => {
  const [here, there] = [join(t.testdir(), 'here'), join(t.testdir(), 'there')]
  const quiet = { DEVNET_SEED: 'false', DEVNET_BLOCK_MS: '0', EDGE_THREADS: '1' }
  const publishing = { INDEX_PUBLISH: 'true', INDEX_SCAN_SECONDS: '1' }
  const first = await run(t, here, { ...quiet, ...publishing })
  const { gateway = '', devnet: node = '' } = first.urls
  const { post } = await payerAt(node)
  const deep = item(randomBytes(5000), { 'Content-Type': 'text/x-deep' })
  const nest = bundleItem([item(Buffer.from('beside')), deep])
  const flat = item(Buffer.from('flat'), { 'Content-Type': 'text/plain' })
  await post(Buffer.from(encodeBundle([flat, nest])), bundleTags)
  // The last of the root's items: all before it were told.
  await until(async () =>
    (await fetch(`${gateway}/raw/${nest.id}`, { method: 'HEAD' })).ok ? true : undefined,
  )
  const built = await sluice(['bands', 'build'], { DATA_PATH: here })
  t.equal(built.code, 0, built.err)
  const [band] = await until(async () => {
    const answer = await fetch(`${gateway}/gateway/indexes`)
    if (answer.status !== 200) return undefined
    const { indexes } = (await answer.json()) as Said
    const bands = indexes[0]?.bands.filter(({ records }) => records >= 4) ?? []
    return bands.length === 0 ? undefined : bands
  })
  const manifest = `${gateway}${band?.http.baseUrl}manifest.json`

  const never = { ANS104_UNBUNDLE_FILTER: '{"never":true}', ANS104_INDEX_FILTER: '{"never":true}' }
  const second = await run(t, there, {
    ...{ EDGE_THREADS: '1', TRUSTED_NODE_URL: node, ...never, CDB64_ROOT_TX_INDEX_SOURCES: manifest },
  })
  for (const wanted of [flat, deep]) {
    const answer = await fetch(`${second.urls.gateway}/raw/${wanted.id}`)
    t.equal(answer.status, 200)
    t.ok(Buffer.from(await answer.arrayBuffer()).equals(wanted.payload))
  }
  t.equal((await fetch(`${second.urls.gateway}/raw/${item(Buffer.from('nobody')).id}`)).status, 404)
  const metrics = await (await fetch(`${second.urls.gateway}/gateway/__gateway_metrics`)).text()
  t.match(metrics, /band_lookups_total\{outcome="remote"\} 2\n/)

  const own = join(here, 'bands', 'own', 'root-tx-index')
  const checked = await sluice(['bands', 'check', ...readdirSync(own).map((name) => join(own, name))])
  t.equal(checked.code, 0, checked.out)
  await first.kill()
  const again = await run(t, here, { ...quiet, ...publishing })
  const info = (await (await fetch(`${again.urls.gateway}/gateway/info`)).json()) as { indexes?: object }
  t.match(
    info.indexes,
    { manifestUrl: '/gateway/indexes', names: ['root-tx-index'] },
    'published before and after a kill',
  )
})

/** Two whole programs that speak different words: one gives its index away, the other follows it. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { vocabularies } from '../../src/attest/vocabulary.js'
import { encodeBundle } from '../../src/format/bundle.js'
import { scratch } from '../scratch.js'
import { bundleTags, item } from '../source/weave.js'
import { payerAt } from './payer.js'
import { document, until } from './published.js'
import { run, sluice } from './running.js'

const quiet = { SERVICES: 'gateway', DEVNET_BLOCK_MS: '0', EDGE_THREADS: '1' }
/** Not a test's own: programs may still write into it when a test is over. */
const folder = scratch('vocabularies-flow')

const status = async (url: string): Promise<number> => (await fetch(url, { method: 'HEAD' })).status

for (const [speaks, hears] of [
  ['neutral', 'ar-io'],
  ['ar-io', 'neutral'],
] as const) {
  t.test(`a ${hears} gateway follows a publisher of the ${speaks} vocabulary`, async (t) => {
    const dataPath = join(folder, `${speaks}-publisher`)
    const words = { ...quiet, INTERFACE_VOCABULARY: speaks }
    const { pathPrefix } = vocabularies[speaks]
    const { urls } = await run(t, dataPath, {
      ...words,
      INDEX_PUBLISH: 'true',
      INDEX_SCAN_SECONDS: '1',
      INDEX_SUPERSEDE_GRACE_SECONDS: '3600',
    })
    const { gateway = '', devnet = '' } = urls
    const payer = await payerAt(devnet)
    const made = item(Buffer.from('known to one of them'))
    await payer.post(encodeBundle([made]), bundleTags)
    await fetch(`${devnet}/mine/30`)
    await until('the item is indexed', async () =>
      (await status(`${gateway}/raw/${made.id}`)) === 200 ? true : undefined,
    )
    const published = await until('a band is published', async () => {
      const { code, err } = await sluice(['bands', 'build'], { ...words, DATA_PATH: dataPath })
      if (code !== 0) throw new Error(err)
      const now = await document(gateway, pathPrefix)
      return now?.indexes.some(({ bands }) => bands.length > 0) ? now : undefined
    })

    const followerPath = join(folder, `${hears}-follower`)
    const follower = await run(t, followerPath, {
      ...quiet,
      INTERFACE_VOCABULARY: hears,
      TRUSTED_NODE_URL: devnet,
      ANS104_UNBUNDLE_FILTER: '{"never":true}',
      INDEX_SUBSCRIPTIONS: `${gateway}#${published.signature.keyId}`,
      INDEX_SUBSCRIPTION_POLL_SECONDS: '1',
    })
    const installed = join(followerPath, 'bands', 'installed', 'root-tx-index')
    await until('the band is in place', async () =>
      existsSync(installed) && readdirSync(installed).length > 0 ? true : undefined,
    )
    const state = readFileSync(join(followerPath, 'bands', 'subscribed', 'state.json'), 'utf8')
    t.match(state, `"url": "${gateway}${pathPrefix}"`, 'which address answered is remembered')
    await until('the item is found by the band', async () =>
      (await status(`${follower.urls.gateway}/raw/${made.id}`)) === 200 ? true : undefined,
    )
    const answer = await fetch(`${follower.urls.gateway}/raw/${made.id}`)
    t.ok(Buffer.from(await answer.arrayBuffer()).equals(made.payload))
  })
}

/** The page of all paths is what the three services say of themselves. */
import { readFileSync } from 'node:fs'
import { fileURLToPath, pathToFileURL } from 'node:url'
import t from 'tap'
import { run } from './running.js'

const root = fileURLToPath(new URL('../../..', import.meta.url))

t.test('docs/http-api.md lists every path', async (t) => {
  const { httpApi } = (await import(pathToFileURL(`${root}/bin/http-api.mjs`).href)) as {
    httpApi(documents: readonly object[]): string
  }
  const { urls } = await run(t, t.testdir(), {
    DEVNET_BLOCK_MS: '0',
    ENABLE_RATE_LIMITER: 'true',
    ENABLE_X_402_USDC_DATA_EGRESS: 'true',
    X_402_USDC_NETWORK: 'base-sepolia',
    X_402_USDC_WALLET_ADDRESS: `0x${'ab'.repeat(20)}`,
    X_402_USDC_FACILITATOR_URL: 'http://127.0.0.1:9',
    X_402_USDC_RPC_URL: 'http://127.0.0.1:9',
  })
  const documents = await Promise.all(
    [urls.gateway, urls.upload, urls.payment].map(async (url) => (await fetch(`${url}/openapi.json`)).json()),
  )
  t.equal(
    readFileSync(`${root}/docs/http-api.md`, 'utf8'),
    httpApi(documents as object[]),
    'node bin/http-api.mjs GATEWAY UPLOAD PAYMENT > docs/http-api.md',
  )
})

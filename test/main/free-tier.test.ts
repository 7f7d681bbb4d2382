import t from 'tap'
import { readConfig } from '../../config/read.js'
import { freeRules } from '../../src/threads/upload-options.js'

const rulesOf = (environment: Record<string, string>): unknown => {
  const config = readConfig(environment)
  if (Array.isArray(config)) throw new Error(config.join('\n'))
  return freeRules(config)
}

t.test('what is free is the same on every network, unless the operator says otherwise', async (t) => {
  const mainnet = { NETWORK: 'mainnet', SERVICES: 'gateway,upload' }
  for (const environment of [{}, mainnet])
    t.match(rulesOf(environment), {
      itemMaxBytes: 107_520,
      walletBytes: 10_485_760,
      rangeBytes: 10_485_760,
    })
  t.match(rulesOf({ UPLOAD_FREE_ITEM_BYTES: '0' }), { itemMaxBytes: 0, walletBytes: 10_485_760 })
  t.match(rulesOf({ ...mainnet, UPLOAD_FREE_WALLET_BYTES: '5' }), { itemMaxBytes: 107_520, walletBytes: 5 })
})

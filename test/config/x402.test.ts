import t from 'tap'
import { readConfig } from '../../config/read.js'
import { x402Faults } from '../../config/x402.js'

const good = {
  X_402_USDC_NETWORK: 'base-sepolia',
  X_402_USDC_WALLET_ADDRESS: '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed',
  X_402_USDC_FACILITATOR_URL: 'https://facilitator.example/',
}

function wrong(settings: Record<string, string>): string[] {
  const read = readConfig({}, settings)
  return Array.isArray(read) ? read : []
}

t.test('a malformed setting is named once, and is not missing as well', async (t) => {
  const settings = { ...good, ENABLE_RATE_LIMITER: 'true', ENABLE_X_402_USDC_DATA_EGRESS: 'true' }
  for (const name of Object.keys(good)) {
    const reasons = wrong({ ...settings, [name]: 'rubbish' })
    t.equal(reasons.length, 1, reasons.join('; '))
    t.ok(reasons[0]?.startsWith(`${name}: `), name)
    t.match(wrong({ ...settings, [name]: '' }), [new RegExp(`needs ${name}$`)])
  }
})

t.test('absurd prices and addresses stop the start, each named', async (t) => {
  const amounts = [
    '-0.1',
    'NaN',
    'Infinity',
    '1e-10',
    '0x1',
    '0',
    '0.000',
    '.5',
    '1.',
    '1,5',
    '00.1',
    '9999999999',
  ]
  for (const name of ['PER_BYTE_PRICE', 'DATA_EGRESS_MIN_PRICE', 'DATA_EGRESS_MAX_PRICE']) {
    for (const amount of amounts) {
      const reasons = wrong({ [`X_402_USDC_${name}`]: amount })
      t.ok(
        reasons.some((line) => line.startsWith(`X_402_USDC_${name}: `)),
        `${name}=${amount}`,
      )
    }
  }
  const others: [string, string[]][] = [
    ['X_402_USDC_DATA_EGRESS_MIN_PRICE', ['0.0000001']],
    ['X_402_RATE_LIMIT_CAPACITY_MULTIPLIER', ['0', '-1', '1.5', 'NaN', '1000001']],
    ['X_402_USDC_SETTLE_TIMEOUT_MS', ['0', '99', '60001', '-5']],
    ['X_402_USDC_NETWORK', ['ethereum', 'Base', 'eip155:8453']],
    // One letter of another case, which is what a mistyped address looks like; and the token's own contract.
    [
      'X_402_USDC_WALLET_ADDRESS',
      [
        '0x1',
        `0x${'0'.repeat(40)}`,
        '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeD',
        '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
        'alice.eth',
      ],
    ],
    ['X_402_USDC_FACILITATOR_URL', ['ftp://x', 'facilitator', 'https://user:key@x/']],
    ['X_402_APP_LOGO', ['javascript:alert(1)', 'data:text/html,x']],
  ]
  for (const [name, texts] of others) {
    for (const text of texts) t.ok(wrong({ [name]: text })[0]?.startsWith(`${name}: `), `${name}=${text}`)
  }
  t.ok(wrong({ X_402_USDC_PER_BYTE_PRISE: '1' })[0]?.includes('did you mean X_402_USDC_PER_BYTE_PRICE'))
})

t.test('a price of thirty places, and an address in any spelling, are good', async (t) => {
  const price = `0.${'0'.repeat(29)}1`
  const lower = good.X_402_USDC_WALLET_ADDRESS.toLowerCase()
  const upper = `0x${lower.slice(2).toUpperCase()}`
  for (const wallet of [good.X_402_USDC_WALLET_ADDRESS, lower, upper]) {
    const read = readConfig(
      {},
      { ...good, X_402_USDC_WALLET_ADDRESS: wallet, X_402_USDC_PER_BYTE_PRICE: price },
    )
    if (Array.isArray(read)) t.fail(read.join())
    else t.match(read.x402, { wallet: lower, perBytePrice: price, enabled: false, minPrice: '0.001' })
  }
})

type Given = Parameters<typeof x402Faults>[0]
const base: Given = {
  enabled: true,
  network: 'base-sepolia',
  wallet: `0x${'1'.repeat(40)}`,
  facilitatorUrl: 'https://facilitator.example',
  minPrice: '0.001',
  maxPrice: '1.00',
  cdpKeyId: undefined,
  cdpKeySecret: undefined,
  cdpKeySecretFile: undefined,
}

t.test('all missing settings of payments are listed at once', async (t) => {
  t.same(x402Faults(base, true), [])
  const nothing = { ...base, network: undefined, wallet: undefined, facilitatorUrl: undefined, minPrice: '2' }
  const reasons = x402Faults(nothing, false)
  const needed = ['MIN_PRICE', 'ENABLE_RATE_LIMITER', 'NETWORK', 'WALLET_ADDRESS', 'FACILITATOR_URL']
  t.equal(reasons.length, needed.length)
  for (const name of needed)
    t.ok(
      reasons.some((line) => line.includes(name)),
      name,
    )
  t.same(x402Faults({ ...nothing, enabled: false, minPrice: '0.1' }, false), [], 'off needs nothing')
})

t.test("the provider's facilitator needs its keys on mainnet, and only there", async (t) => {
  const provider = { ...base, facilitatorUrl: 'https://api.cdp.coinbase.com/platform/v2/x402' }
  t.same(x402Faults(provider, true), [])
  t.match(x402Faults({ ...provider, network: 'base' }, true), [/CDP_API_KEY_ID/])
  t.same(x402Faults({ ...provider, network: 'base', cdpKeyId: 'a', cdpKeySecretFile: 'f' }, true), [])
  t.same(x402Faults({ ...base, network: 'base' }, true), [])
  t.match(x402Faults({ ...base, cdpKeyId: 'a' }, true), [/need each other/])
})

t.test('secrets are never repeated', async (t) => {
  const reasons = wrong({ CDP_API_KEY_ID: 'top secret', CDP_API_KEY_SECRET: 'x' })
  t.match(reasons, [/^CDP_API_KEY_ID: /])
  t.notMatch(reasons.join(), /top secret/)
})

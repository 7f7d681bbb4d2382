import t from 'tap'
import { type Config, listSettings, readConfig } from '../../config/read.js'
import type { Log } from '../../src/actor/log.js'
import { Reloading } from '../../src/main/reload.js'
import { scratch } from '../scratch.js'

function configOf(settings: Record<string, string>): Config {
  const config = readConfig(settings, { DATA_PATH: folder, ADMIN_API_KEY: 'first-key' })
  if (Array.isArray(config)) throw new Error(config.join('\n'))
  return config
}

const folder = scratch('reload')

/** For each setting that a running program can take up, another value than the usual one. */
const others: Readonly<Record<string, string>> = {
  LOG_LEVEL: 'debug',
  RATE_LIMITER_IP_TOKENS_PER_BUCKET: '7',
  RATE_LIMITER_IP_REFILL_PER_SEC: '7',
  RATE_LIMITER_RESOURCE_TOKENS_PER_BUCKET: '7',
  RATE_LIMITER_RESOURCE_REFILL_PER_SEC: '7',
  RATE_LIMITER_IPS_AND_CIDRS_ALLOWLIST: '203.0.113.7',
  RATE_LIMITER_ARNS_ALLOWLIST: 'free',
  TRUSTED_PROXIES: 'none',
  SKIP_FORWARDING_HEADERS: 'x-other',
  SKIP_FORWARDING_EMPTY_USER_AGENT: 'false',
  SKIP_FORWARDING_USER_AGENTS: 'crawler',
  TRUSTED_GATEWAYS_BLOCKED_ORIGINS: 'greedy.example',
  TRUSTED_GATEWAYS_BLOCKED_IPS_AND_CIDRS: '203.0.113.7',
  CACHE_ONLY_CLIENT_IPS_AND_CIDRS: '203.0.113.7',
  UPLOAD_FREE_WALLETS: 'A'.repeat(43),
  UPLOAD_BLOCKED_OWNERS: 'A'.repeat(43),
  PAYMENT_EXCLUDED_ADDRESSES: 'somebody',
  ADMIN_API_KEY: 'another-key',
  ADMIN_API_KEY_FILE: '/nowhere/key',
}

function reloadingFrom(started: Config) {
  const sent: { file: string; about: string; message: unknown }[] = []
  const levels: string[] = []
  const live = { config: started, key: 'first-key' }
  const say = (): void => undefined
  const reloading = new Reloading({
    started,
    threads: {
      tell: (file, about, message) => void sent.push({ file, about, message }),
      setLogLevel: (level) => void levels.push(level),
    },
    tls: { reload: () => ({ refused: [], isOtherCertificate: false }) },
    log: { info: say, warn: say, error: say } as unknown as Pick<Log, 'info' | 'warn' | 'error'>,
    live,
  })
  return { reloading, sent, levels, live }
}

t.test('each reloadable setting reaches a thread, and is named', async (t) => {
  const reloadable = listSettings().flatMap(({ env, reloadable: is }) => (is ? [env] : []))
  t.same([...reloadable].sort(), Object.keys(others).sort(), 'each has another value here')
  const usual = configOf({})
  for (const [name, value] of Object.entries(others)) {
    if (name === 'ADMIN_API_KEY_FILE') continue
    const { reloading, sent, levels, live } = reloadingFrom(usual)
    const { logLevel } = usual.server
    const before = reloading.reload(usual)
    t.same(before.used, [], 'nothing is said to be used where nothing differs')
    const first = JSON.stringify([sent.splice(0), levels.splice(0)])
    const after = reloading.reload(configOf({ [name]: value }))
    t.same([after.used, after.waiting, after.wrong], [[name], [], []])
    t.not(JSON.stringify([sent, levels]), first, `${name} is told`)
    t.equal(live.key, name === 'ADMIN_API_KEY' ? value : 'first-key')
    // The level is one of this process, too.
    reloading.reload(usual)
    t.equal(levels.at(-1), logLevel)
  }
})

t.test('secrets reach those alone who use them; all else waits for a start', async (t) => {
  const { reloading, sent } = reloadingFrom(configOf({}))
  const read = configOf({ ADMIN_API_KEY: 'another-key', PORT: '4000', TRUSTED_PROXIES: 'none' })
  const { used, waiting } = reloading.reload(read)
  t.same([used, waiting], [['ADMIN_API_KEY', 'TRUSTED_PROXIES'], ['PORT']])
  const withKey = sent.filter(({ message }) => JSON.stringify(message).includes('another-key'))
  t.same(withKey.map(({ file }) => file).sort(), ['edge', 'payment', 'upload'])
  const edge = sent.find(({ file }) => file === 'edge')?.message as { settings: Config }
  t.equal(edge.settings.server.port, 3000, 'no thread sees what waits')
  t.same(edge.settings.limits.trustedProxies, [])
  t.same(reloading.reload(read).used, [], 'used once')
  t.same(reloading.reload(read).waiting, ['PORT'], 'named until the next start')
})

t.test('one wrong setting, or a key that cannot be read, changes nothing', async (t) => {
  const { reloading, sent, levels, live } = reloadingFrom(configOf({}))
  const wrong = readConfig({ LOG_LEVEL: 'debug', PORT: 'x' }, { DATA_PATH: folder })
  t.match(reloading.reload(wrong), { used: [], waiting: [], wrong: [/^PORT: must be/] })
  const keyless = configOf({ LOG_LEVEL: 'debug', ADMIN_API_KEY_FILE: '/nowhere/key' })
  t.match(reloading.reload(keyless), {
    used: [],
    wrong: [/^ADMIN_API_KEY_FILE: \/nowhere\/key cannot be read/],
  })
  t.same([sent, levels, live.key], [[], [], 'first-key'])
})

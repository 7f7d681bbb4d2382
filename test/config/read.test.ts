import t from 'tap'
import { responseCacheBytes } from '../../config/answers.js'
import { foreign } from '../../config/foreign.js'
import { settingGroups } from '../../config/groups.js'
import { foreignSettings, listSettings, readConfig as readOver, settingsInUse } from '../../config/read.js'

const readConfig = (environment: Record<string, string>) => readOver({}, environment)

t.test('an empty environment gives every default', async (t) => {
  const config = readConfig({})
  if (Array.isArray(config)) throw new Error(config.join('\n'))
  t.equal(config.server.port, 3000)
  t.equal(config.server.network, 'devnet')
  t.equal(config.server.dataPath, './data')
  t.equal(config.answers.digestBufferMaxBytes, 2 * 1024 * 1024)
  t.strictSame(config.retrieval.onDemandOrder[0], 'trusted-gateways')
  t.throws(() => Object.assign(config.server, { port: 1 }), TypeError, 'the values are frozen')
})

t.test('the tables of repeated answers are sized by memory and processors', async (t) => {
  const gib = 2 ** 30
  t.equal(responseCacheBytes(24 * gib, 2), 384 * 2 ** 20, 'a thirty-second part')
  t.equal(responseCacheBytes(4 * gib, 4), 2 ** 26, 'but 64 MiB each')
  for (const [memory, threads] of [
    [gib / 2, 2],
    [gib, 64],
    [16 * gib, 64],
  ] as const) {
    const each = responseCacheBytes(memory, threads)
    t.ok(each * threads <= memory / 8 && each <= 2 ** 26, `${memory} for ${threads}`)
  }
})

t.test('all errors are listed at once', async (t) => {
  const wrong = readConfig({
    PORT: '70000',
    DEVNET_PORT: '-1',
    HTTPSIG_ENABLED: 'yes',
    NETWORK: 'moonnet',
    TRUSTED_NODE_URL: 'ftp://node',
    TRUSTED_GATEWAYS_URLS: '{"https://a": "one"}',
    RATE_LIMITER_TYPO: '1',
    LOG_LEVL: 'debug',
  })
  t.ok(Array.isArray(wrong))
  const reasons = (wrong as string[]).join('\n')
  for (const name of [
    'PORT',
    'DEVNET_PORT',
    'HTTPSIG_ENABLED',
    'NETWORK',
    'TRUSTED_NODE_URL',
    'TRUSTED_GATEWAYS_URLS',
  ]) {
    t.match(reasons, `${name}: `)
  }
  t.match(reasons, 'RATE_LIMITER_TYPO: no such setting')
  t.match(reasons, 'LOG_LEVL: no such setting; did you mean LOG_LEVEL?')
  t.equal((wrong as string[]).length, 8)
})

t.test('an empty text counts as unset', async (t) => {
  const config = readConfig({ PORT: '', HTTPSIG_TYPO: '' })
  t.notOk(Array.isArray(config))
})

t.test('numbers are digits and nothing else', async (t) => {
  for (const text of ['1e3', '0x10', '+5', ' 5 5', '3.0', '１２', 'NaN']) {
    t.ok(Array.isArray(readConfig({ PORT: text })), `refuses ${text}`)
  }
  const config = readConfig({ PORT: ' 8080 ' })
  t.equal(Array.isArray(config) ? 0 : config.server.port, 8080, 'white space around is forgiven')
})

t.test('contradictions stop the start', async (t) => {
  const wrong = readConfig({
    OBSERVER_KEYPAIR_PATH: '/k',
    OBSERVER_PRIVATE_KEY: '2'.repeat(87),
    DEVNET_REPLAY_PATH: '/r',
  })
  t.match(wrong, ['OBSERVER_KEYPAIR_PATH and OBSERVER_PRIVATE_KEY exclude each other: set one'])
  t.match(readConfig({ CONSOLE_PORT: '3000' }), [/^CONSOLE_PORT and PORT must differ/])
  t.match(readConfig({ CONSOLE_PORT: '1984' }), ['CONSOLE_PORT and DEVNET_PORT must differ'])
  t.match(readConfig({ PORT: '65530' }), [/^CONSOLE_PORT: PORT \+ 10 is no port/])
  t.notOk(Array.isArray(readConfig({ PORT: '65535', CONSOLE_ENABLED: 'false' })))
  t.match(readConfig({ PORT: '1984' }), ['PORT and DEVNET_PORT must differ'])
})

t.test('a secret is never printed', async (t) => {
  const wrong = readConfig({ OBSERVER_PRIVATE_KEY: 'hunter2-hunter2' })
  t.notMatch((wrong as string[]).join(), 'hunter2')
})

t.test('TRUSTED_GATEWAYS_URLS takes both forms', async (t) => {
  const config = readConfig({
    TRUSTED_GATEWAYS_URLS: '{"https://a.example/": 1, "http://b": {"priority": 2, "trusted": false}}',
  })
  t.strictSame(Array.isArray(config) ? config : config.retrieval.trustedGateways, [
    { url: 'https://a.example', priority: 1, trusted: true },
    { url: 'http://b', priority: 2, trusted: false },
  ])
})

t.test('every setting has a name of its own, a reason, and a default it would accept', async (t) => {
  const names = listSettings().map((setting) => setting.env)
  t.equal(new Set(names).size, names.length)
  for (const setting of listSettings()) {
    t.ok(setting.why.length > 10, setting.env)
    if (setting.defaultText !== '')
      t.match(setting.read(setting.defaultText), { value: setting.fallback }, setting.env)
  }
})

t.test('receivers of webhooks may have a query, other addresses may not', async (t) => {
  const url = 'https://hooks.example/take?key=a%20b'
  const config = readConfig({ WEBHOOK_TARGET_SERVERS: url })
  t.strictSame(Array.isArray(config) ? config : config.webhooks.servers, [url])
  const wrong = ['https://hooks.example/#x', 'https://u:secret@hooks.example/', 'ftp://hooks.example']
  for (const one of wrong) {
    const reasons = readConfig({ WEBHOOK_TARGET_SERVERS: one })
    t.match(reasons, [/^WEBHOOK_TARGET_SERVERS: /])
    t.notMatch(String(reasons), 'secret')
  }
  t.match(readConfig({ TRUSTED_NODE_URL: url }), ['TRUSTED_NODE_URL: must not hold a query'])
})

t.test('options of the command line take precedence over the environment', async (t) => {
  const config = readOver({ PORT: '1' }, { PORT: '2', DEVNET_PORT: '3' })
  t.match(config, { server: { port: 1, devnetPort: 3 } })
})

t.test('names that contradict each other stop the start', async (t) => {
  const id = 'A'.repeat(43)
  const rows: [Record<string, string>, RegExp][] = [
    [{ APEX_TX_ID: id, APEX_ARNS_NAME: 'site' }, /exclude each other/],
    [{ APEX_TX_ID: id, NETWORK: 'mainnet' }, /need ARNS_ROOT_HOST/],
    [{ APEX_ARNS_NAME: 'a,b', ARNS_ROOT_HOST: 'one.example' }, /one for each host/],
    [{ ARNS_ROOT_HOST: 'one.example,ONE.example' }, /twice/],
    [{ ARNS_ROOT_HOST: 'one.example:80' }, /host names/],
    [{ ARNS_ROOT_HOST: 'one..example' }, /host names/],
    [{ ARNS_RESOLVER_PRIORITY_ORDER: 'gateway,gateway' }, /twice/],
    [{ ARNS_RESOLVER_PRIORITY_ORDER: 'gateway,oracle' }, /local, gateway or on-demand/],
    [{ TRUSTED_ARNS_GATEWAY_URL: 'ftp://__NAME__' }, /http/],
    [{ SANDBOX_PROTOCOL: 'gopher' }, /http or https/],
    [{ ARNS_NOT_FOUND_ARNS_NAME: 'Not A Name' }, /a name/],
  ]
  for (const [environment, reasons] of rows) {
    const wrong = readConfig(environment)
    t.match(Array.isArray(wrong) ? wrong.join('\n') : '', reasons, JSON.stringify(environment))
  }
  const good = readConfig({
    ARNS_ROOT_HOST: 'one.example, two.example',
    APEX_ARNS_NAME: 'docs_a,b',
    NETWORK: 'mainnet',
    TRUSTED_ARNS_GATEWAY_URL: 'https://__NAME__.gateway.example',
  })
  if (Array.isArray(good)) throw new Error(good.join('\n'))
  t.same(good.names.rootHosts, ['one.example', 'two.example'])
  t.same(good.names.apexNames, ['docs_a', 'b'])
})

t.test(
  'words of other gateways in an order are skipped and told; an order of nothing else is refused',
  async (t) => {
    const given = {
      ON_DEMAND_RETRIEVAL_ORDER: 'trusted-gateways-offset-aware, turbo-s3,chunks-offset-aware,tx-data',
      ROOT_TX_LOOKUP_ORDER: 'db,turbo,hyperbeam,peers,graphql',
    }
    const config = readConfig(given)
    if (Array.isArray(config)) throw new Error(config.join())
    t.same(config.retrieval.onDemandOrder, ['chunks-offset-aware', 'tx-data'])
    t.same(config.rootLookup.order, ['db'], 'no gateway is asked that was not named')
    t.match(
      foreignSettings(given).map(({ setting }) => setting),
      [
        'ON_DEMAND_RETRIEVAL_ORDER: trusted-gateways-offset-aware',
        'ON_DEMAND_RETRIEVAL_ORDER: turbo-s3',
        'ROOT_TX_LOOKUP_ORDER: turbo',
        'ROOT_TX_LOOKUP_ORDER: hyperbeam',
        'ROOT_TX_LOOKUP_ORDER: peers',
        'ROOT_TX_LOOKUP_ORDER: graphql',
      ],
    )
    const chunkOrder = readConfig({ CHUNK_DATA_RETRIEVAL_ORDER: 'legacy-s3,arweave-network' })
    t.same(!Array.isArray(chunkOrder) && chunkOrder.chunks.order, ['arweave-network'])
    t.match(readConfig({ ON_DEMAND_RETRIEVAL_ORDER: 's3' }), [/names nothing that is here/])
    t.match(readConfig({ ON_DEMAND_RETRIEVAL_ORDER: 's3,chunk' }), [/has entries that are not .*: chunk/])
    const only = readConfig({ ROOT_TX_LOOKUP_ORDER: 'turbo' })
    t.same(!Array.isArray(only) && only.rootLookup.order, [])
  },
)

t.test('settings of other gateways do not stop the start, and are listed with their reason', async (t) => {
  const given = {
    EXTRA_REDIS_FLAGS: '--save 60 1',
    ARNS_NAMES_CACHE_TTL_SECONDS: '3600',
    CHAIN_CACHE_TYPE: '',
  }
  t.notOk(Array.isArray(readConfig(given)))
  t.match(foreignSettings(given), [
    { setting: 'EXTRA_REDIS_FLAGS', why: /deploy/ },
    { setting: 'ARNS_NAMES_CACHE_TTL_SECONDS', why: /names/ },
  ])
  t.equal(foreignSettings(given).length, 2, 'an empty text counts as unset')
  const both = listSettings().filter(({ env }) => foreign.has(env))
  t.same(both, [], 'no setting of ours is said to have no effect')
  const rules = {
    SKIP_FORWARDING_USER_AGENTS: 'Bot, spider',
    CACHE_ONLY_CLIENT_IPS_AND_CIDRS: '10.0.0.0/8',
    ARWEAVE_POST_DRY_RUN: 'true',
  }
  const config = readConfig(rules)
  if (Array.isArray(config)) throw new Error(config.join())
  t.same(config.forwarding.userAgents, ['Bot', 'spider'])
  t.match(readConfig({ CACHE_ONLY_CLIENT_IPS_AND_CIDRS: '10.0.0.0/33' }), [/no address or range/])
})

t.test('settings are found by words of their names, texts and groups, each of them once', async (t) => {
  const all = settingGroups().flatMap(({ settings }) => settings.map(({ env }) => env))
  t.strictSame(
    [...all].sort(),
    listSettings()
      .map(({ env }) => env)
      .sort(),
  )
  const found = settingGroups(['shutdown', 'SIGTERM']).flatMap(({ settings }) =>
    settings.map(({ env }) => env),
  )
  t.strictSame(found, ['SHUTDOWN_NOTICE_MS', 'SHUTDOWN_DRAIN_MS'])
  t.ok(settingGroups(['gateways']).length > 1, 'in several groups')
  t.strictSame(settingGroups(['no such word']), [])
})

t.test('settings in use are told without what must not be told', async (t) => {
  const reasons = settingsInUse({
    ADMIN_API_KEY: 'a-secret-key',
    TRUSTED_NODE_URL: 'http://user:word@node.example/@x',
    WEBHOOK_TARGET_SERVERS: 'https://me:word@a.example/, https://b.example/@c',
    HOME: '/home/somebody',
  })
  t.strictSame(reasons, {
    TRUSTED_NODE_URL: 'http://...@node.example/@x',
    ADMIN_API_KEY: 'set',
    WEBHOOK_TARGET_SERVERS: 'set',
  })
})

/** The whole program with HTTPS: a certificate from an ACME server, renewed under downloads; files that change; the redirect. */
import { execFileSync, spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { get as getPlain } from 'node:http'
import { Agent, get, request } from 'node:https'
import { join } from 'node:path'
import { connect } from 'node:tls'
import t from 'tap'
import { readConfig } from '../../config/read.js'
import { authority, signed } from '../certificates/made.js'
import { startPebble, withoutPebble } from '../certificates/pebble.js'
import { eventually } from '../eventually.js'
import { run, seeded, sluice } from './running.js'

/** The certificate that is served for a name. */
function servedFor(
  port: number,
  servername: string,
): Promise<{ issuer: string; serial: string; names: string }> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', servername, rejectUnauthorized: false }, () => {
      const { issuer, serialNumber, subjectaltname = '' } = socket.getPeerCertificate()
      socket.destroy()
      resolve({ issuer: String(issuer.CN), serial: serialNumber, names: subjectaltname })
    })
    socket.once('error', reject)
  })
}

function answered(
  url: string,
  headers: Record<string, string> = {},
): Promise<{ status: number; location?: string }> {
  return new Promise((resolve, reject) => {
    getPlain(url, { headers }, (answer) => {
      answer.resume()
      const { location } = answer.headers
      resolve({ status: answer.statusCode ?? 0, ...(location === undefined ? {} : { location }) })
    }).once('error', reject)
  })
}

t.test('two settings and a name: issued, renewed under downloads', { skip: withoutPebble }, async (t) => {
  const pebble = await startPebble(t)
  const folder = t.testdir({})
  const environment = {
    DATA_PATH: join(folder, 'data'),
    TLS_PORT: '0',
    HTTP_REDIRECT_PORT: String(pebble.httpPort),
    TLS_ACME: 'true',
    TLS_HSTS_SECONDS: '3600',
    TLS_ACME_NAMES: 'site.example',
    TLS_ACME_DIRECTORY_URL: pebble.directoryUrl,
    NODE_EXTRA_CA_CERTS: pebble.caFile,
  }
  const { urls, examples, log, stop } = await run(t, join(folder, 'data'), { ...environment, ...seeded })
  const port = Number(new URL(urls.https ?? '').port)
  const first = await eventually('a certificate of the ACME server is served', async () => {
    const served = await servedFor(port, 'site.example')
    return served.issuer.startsWith('Pebble') ? served : undefined
  })
  t.equal(first.names, 'DNS:site.example')
  const ca = join(folder, 'root.pem')
  writeFileSync(ca, pebble.issuer())
  const id = Object.values(examples)[0] ?? ''
  const curl = [
    '-sS',
    '--cacert',
    ca,
    '--resolve',
    `site.example:${port}:127.0.0.1`,
    `https://site.example:${port}/raw/${id}`,
  ]
  const plain = Buffer.from(await (await fetch(`${urls.gateway}/raw/${id}`)).arrayBuffer())
  t.ok(execFileSync('curl', curl).equals(plain), 'curl trusts it, and gets the same bytes')
  t.equal(spawnSync('curl', [...curl, '--http1.1', '--tls-max', '1.2']).status, 0)

  // 50 connections that go on while the certificate is replaced.
  const agent = new Agent({
    keepAlive: true,
    maxSockets: 50,
    ca: pebble.issuer(),
    servername: 'site.example',
  })
  const sockets = new Set<unknown>()
  const strict = new Set<unknown>()
  const download = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const sent = request({ agent, port, host: '127.0.0.1', path: `/raw/${id}` }, (answer) => {
        sockets.add(answer.socket)
        strict.add(answer.headers['strict-transport-security'])
        const pieces: Buffer[] = []
        answer.on('data', (piece: Buffer) => pieces.push(piece))
        answer.once('end', () =>
          Buffer.concat(pieces).equals(plain) ? resolve() : reject(new Error('other bytes')),
        )
      })
      sent.once('error', reject).end()
    })
  const all = () => Promise.all(Array.from({ length: 50 }, download))
  await all()
  const renewed = await sluice(['tls', 'renew'], environment)
  t.match(renewed, { code: 0, out: /issued: .*site\.example\.pem/ })
  const second = await eventually('the new certificate is served', async () => {
    const served = await servedFor(port, 'site.example')
    return served.serial === first.serial ? undefined : served
  })
  t.match(second.issuer, /^Pebble/)
  await all()
  agent.destroy()
  t.equal(sockets.size, 50, 'no connection was dropped')
  t.strictSame([...strict], ['max-age=3600'], 'answers of the response cache have the line, too')
  t.equal((await fetch(`${urls.gateway}/raw/${id}`)).headers.get('strict-transport-security'), null)
  t.match(await sluice(['tls', 'status'], environment), {
    code: 0,
    out: /site\.example\n {2}by Pebble.*expires in/,
  })
  t.match(await sluice(['tls', 'check', `127.0.0.1:${port}`]), { code: 1, out: /do not trust it/ })

  t.strictSame(await answered(`${urls.redirect}/a/b?c=d`), {
    status: 308,
    location: `https://127.0.0.1:${port}/a/b?c=d`,
  })
  t.strictSame(await answered(`${urls.redirect}/x`, { host: 'Site.Example' }), {
    status: 308,
    location: 'https://site.example/x',
  })
  t.strictSame(await answered(`${urls.redirect}/x`, { host: 'a/b' }), { status: 400 })
  t.strictSame(await answered(`${urls.redirect}/.well-known/acme-challenge/..%2f..%2fkeys`), { status: 404 })
  t.strictSame(
    log.filter(({ level }) => level === 'error'),
    [],
  )
  t.equal(await stop(), 0)
})

t.test('certificates of the operator: by name, swapped, wrong, reloaded', async (t) => {
  const folder = t.testdir({ certs: {} })
  const at = (name: string): string => join(folder, name)
  const root = authority(at('root'), 'root')
  const write = (name: string, { cert, key }: { cert: string; key: string }): void => {
    writeFileSync(at(`${name}.crt`), cert)
    writeFileSync(at(`${name}.key`), key)
  }
  const own = signed(at('own'), root, { names: ['a.example'] })
  const other = signed(at('other'), root, { names: ['*.b.example'] })
  write('own', own)
  mkdirSync(at('certs/b'))
  writeFileSync(at('certs/b/fullchain.pem'), other.cert)
  writeFileSync(at('certs/b/privkey.pem'), other.key)
  const environment = {
    TLS_PORT: '0',
    TLS_CERT_FILE: at('own.crt'),
    TLS_KEY_FILE: at('own.key'),
    TLS_CERTS_PATH: at('certs'),
    UPLOAD_TLS_PORT: '0',
    PAYMENT_TLS_PORT: '0',
    CONSOLE_TLS_PORT: '0',
    LOG_LEVEL: 'error',
    SETTINGS_FILE: at('settings'),
  }
  writeFileSync(at('settings'), '# of the operator\nLOG_LEVEL=info\n')
  const { urls, log, process: child, stop } = await run(t, at('data'), environment)
  const port = Number(new URL(urls.https ?? '').port)
  const others = [urls.uploadHttps, urls.paymentHttps, urls.consoleHttps].map((url = '') => new URL(url).port)
  const ca = readFileSync(at('root/root.crt'))
  const statusOver = (url: string | undefined, path: string): Promise<number> =>
    new Promise((resolve, reject) => {
      const { port } = new URL(url ?? '')
      get({ host: '127.0.0.1', port, path, ca, servername: 'a.example' }, (answer) => {
        answer.resume()
        resolve(answer.statusCode ?? 0)
      }).once('error', reject)
    })
  t.equal(
    await statusOver(urls.uploadHttps, '/info'),
    200,
    'the services beside the gateway have the same certificate',
  )
  t.equal(await statusOver(urls.paymentHttps, '/v1/rates'), 200)
  t.equal(await statusOver(urls.consoleHttps, new URL(urls.consoleHttps ?? '').pathname), 200)
  t.equal((await fetch(`${urls.upload}/metrics`)).status, 200)
  for (const url of [urls.uploadHttps, urls.paymentHttps]) {
    t.equal(await statusOver(url, '/metrics'), 404, 'what is for operators is not there for all')
    t.equal(await statusOver(url, '/admin/overview'), 404)
  }
  const namesFor = async (name: string) => (await servedFor(port, name)).names
  t.equal(await namesFor('a.example'), 'DNS:a.example')
  t.equal(await namesFor('x.b.example'), 'DNS:*.b.example')
  t.equal(await namesFor('x.y.b.example'), 'DNS:a.example', 'a wildcard stands for one label')
  t.equal(await namesFor('unknown.example'), 'DNS:a.example', 'the first one is for all others')

  const serial = (await servedFor(port, 'a.example')).serial
  copyFileSync(at('certs/b/privkey.pem'), at('own.key'))
  child.kill('SIGHUP')
  await eventually('the wrong key is named', () => log.some(({ why }) => /not that of/.test(String(why))))
  t.equal((await servedFor(port, 'a.example')).serial, serial, 'the old one stays')
  const health = (await (await fetch(`${urls.gateway}/gateway/healthcheck`)).json()) as {
    warnings?: string[]
  }
  t.match(health.warnings, [/expires in 9 days/, /1 certificates of HTTPS cannot be used/])
  write('own', signed(at('next'), root, { names: ['c.example'], days: 90 }))
  child.kill('SIGHUP')
  for (const each of [port, ...others.map(Number)])
    await eventually(
      'the next one is served',
      async () => (await servedFor(each, 'c.example')).names === 'DNS:c.example',
    )
  const logged = (msg: RegExp) => log.filter((line) => msg.test(String(line.msg)))
  const hangUp = async (settings: string, msg: RegExp) => {
    const before = logged(msg).length
    writeFileSync(at('settings'), settings)
    child.kill('SIGHUP')
    return eventually('the settings are read', async () => logged(msg).slice(before)[0])
  }
  t.match(await hangUp('LOG_LEVEL="debug"\nEDGE_THREADS=2\n', /from the next start/), {
    settings: ['EDGE_THREADS'],
  })
  await eventually('threads log more', async () => {
    await fetch(`${urls.gateway}/gateway/info`)
    return log.some(({ level, thread }) => level === 20 && thread === 'edge-1') || undefined
  })
  const wrong = await hangUp('LOG_LEVEL=error\nEDGE_THREADS=many\n', /settings are wrong/)
  t.match(wrong, { wrong: [/EDGE_THREADS: must be/] }, 'one that is wrong keeps all of them from being used')
  t.match(await hangUp('LOG_LEVEL=info\n', /were read again/), { used: ['LOG_LEVEL'] })
  rmSync(at('certs/b'), { recursive: true })
  await eventually('without a signal', async () => (await namesFor('x.b.example')) === 'DNS:c.example')
  t.match(
    await (await fetch(`${urls.gateway}/gateway/__gateway_metrics`)).text(),
    /tls_certificates_refused\S* 0\n/,
  )
  t.equal(await stop(), 0)
})

t.test('a start without a certificate that can be used says why', async (t) => {
  const folder = t.testdir({ 'own.crt': 'x', 'own.key': 'y', certs: {} })
  const start = (environment: Record<string, string>) =>
    sluice(['start'], { PORT: '0', DEVNET_PORT: '0', DATA_PATH: join(folder, 'data'), ...environment })
  const files = { TLS_CERT_FILE: join(folder, 'own.crt'), TLS_KEY_FILE: join(folder, 'own.key') }
  t.match(await start({ TLS_PORT: '0', ...files }), { code: 1, err: /own\.crt: it holds no certificate/ })
  t.match(await start({ TLS_PORT: '0', TLS_CERTS_PATH: join(folder, 'certs') }), {
    code: 1,
    err: /TLS_CERTS_PATH: .* holds no certificate/,
  })
  const wrong = (given: Record<string, string>) => {
    const read = readConfig(given, {})
    return Array.isArray(read) ? read.join('\n') : 'nothing'
  }
  t.match(wrong({ TLS_PORT: '0' }), /^TLS_PORT: needs a certificate, by one of TLS_CERT_FILE/)
  t.match(wrong({ UPLOAD_TLS_PORT: '0' }), /^UPLOAD_TLS_PORT: needs a certificate/)
  t.match(
    wrong({ TLS_ACME: 'true', TLS_PORT: '0', NETWORK: 'mainnet', TLS_SELF_SIGNED: 'true' }),
    /(?=[\s\S]*TLS_SELF_SIGNED: only on devnet)(?=[\s\S]*needs ARNS_ROOT_HOST)(?=[\s\S]*needs HTTP_REDIRECT_PORT)/,
  )
  const own = { TLS_SELF_SIGNED: 'true' }
  t.equal(wrong(own), 'TLS_SELF_SIGNED: needs TLS_PORT')
  t.equal(wrong({ ...own, UPLOAD_TLS_PORT: '443' }), 'nothing')
  t.equal(wrong({ ...own, TLS_PORT: '3001' }), 'TLS_PORT and UPLOAD_PORT must differ')
  t.equal(
    wrong({ ...own, TLS_PORT: '443', CONSOLE_TLS_PORT: '443' }),
    'CONSOLE_TLS_PORT and TLS_PORT must differ',
  )
  t.equal(
    wrong({ ...own, TLS_PORT: '443', PAYMENT_TLS_PORT: '444', SERVICES: 'gateway' }),
    'PAYMENT_TLS_PORT: there is no payment in this program',
  )
})

/** Certificates from an ACME server that nobody here wrote. */
import { X509Certificate } from 'node:crypto'
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { Agent } from 'node:https'
import { join } from 'node:path'
import acme from 'acme-client'
import t, { type Test } from 'tap'
import { systemClock } from '../../src/actor/clock.js'
import { silentLog } from '../../src/actor/log.js'
import { Meters, meterBytes } from '../../src/actor/meter.js'
import { meterTable } from '../../src/actor/meter-table.js'
import { issueCertificate } from '../../src/certificates/acme.js'
import { Challenges } from '../../src/certificates/challenges.js'
import { CurrentCertificates } from '../../src/certificates/current.js'
import { DnsHook } from '../../src/certificates/dns-hook.js'
import { serve } from '../../src/http/listen.js'
import { httpsRedirect } from '../../src/routes/https-redirect.js'
import { eventually } from '../eventually.js'
import { type Pebble, startPebble, withoutPebble } from './pebble.js'

function trust({ caFile }: Pebble): void {
  acme.axios.defaults.httpsAgent = new Agent({ ca: readFileSync(caFile) })
}

/** Answers challenges at the port where the ACME server requests them. */
async function listening(t: Test, port: number, challenges: Challenges): Promise<void> {
  const meters = new Meters(meterTable, new SharedArrayBuffer(meterBytes(meterTable, 1)), 0)
  const handler = httpsRedirect({
    challenges,
    httpsPort: 8443,
    meters,
    log: silentLog,
    clock: systemClock,
  })
  const options = {
    host: '127.0.0.1',
    port,
    stallMs: 5000,
    requestsMax: 100,
    onThrow: (error: unknown) => t.fail(String(error)),
  }
  const server = serve(handler, options)
  await server.listening
  t.teardown(() => server.close(0))
}

t.test('a host by http-01, a wildcard by dns-01', { skip: withoutPebble }, async (t) => {
  const pebble = await startPebble(t)
  trust(pebble)
  const { directoryUrl } = pebble
  const folder = t.testdir({})
  const challenges = new Challenges(join(folder, 'challenges'))
  await listening(t, pebble.httpPort, challenges)

  const path = await issueCertificate(['site.example'], { directoryUrl, folder, challenges })
  t.equal(statSync(path).mode & 0o777, 0o600)
  const current = new CurrentCertificates({ issued: join(folder, 'issued') })
  t.strictSame(current.read(Date.now()), { isChanged: true, refused: [] })
  t.strictSame(current.pairs[0]?.names, ['site.example'])
  t.ok(new X509Certificate(current.pairs[0]?.cert ?? ''))
  t.strictSame(readdirSync(join(folder, 'challenges')), [], 'no challenge is left')

  const dns = new DnsHook(pebble.hook)
  // Another name: now and then this server takes what it has checked before, whatever its settings.
  const names = ['wide.example', '*.wide.example']
  await issueCertificate(names, { directoryUrl, folder, challenges, dns, email: 'a@site.example' })
  t.strictSame(current.read(Date.now()), { isChanged: true, refused: [] })
  t.ok(current.pairs.some((pair) => names.every((name) => pair.names.includes(name))))
  const calls = readFileSync(pebble.hookLog, 'utf8').trim().split('\n')
  t.equal(calls.filter((line) => line.startsWith('add _acme-challenge.wide.example ')).length, 2)
  t.equal(calls.filter((line) => line.startsWith('remove ')).length, 2)
  t.equal(readdirSync(join(folder, 'accounts')).length, 1, 'one account for both')
})

t.test('what a server or a hook refuses is named, and leaves nothing', { skip: withoutPebble }, async (t) => {
  const pebble = await startPebble(t, {
    externalAccount: { keyId: 'kid-1', hmacKey: 'c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LTEyMzQ' },
  })
  trust(pebble)
  const { directoryUrl } = pebble
  const folder = t.testdir({})
  const challenges = new Challenges(join(folder, 'challenges'))
  const options = { directoryUrl, folder, challenges }
  await t.rejects(issueCertificate(['a.example'], options), /external ?account/i)
  const externalAccount = { keyId: 'kid-1', hmacKey: 'c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LTEyMzQ' }
  const failing = join(folder, 'failing.sh')
  writeFileSync(failing, '#!/bin/sh\necho the provider says no >&2\nexit 3\n', { mode: 0o755 })
  const bound = { ...options, externalAccount }
  await t.rejects(
    issueCertificate(['a.example'], { ...bound, dns: new DnsHook(failing) }),
    /TLS_DNS_HOOK add _acme-challenge\.a\.example: .*the provider says no/s,
  )
  const hanging = join(folder, 'hanging.sh')
  writeFileSync(hanging, '#!/bin/sh\nexec sleep 60\n', { mode: 0o755 })
  await t.rejects(
    issueCertificate(['a.example'], { ...bound, dns: new DnsHook(hanging, 200) }),
    /did not end within/,
  )
  t.throws(() => statSync(join(folder, 'issued')), { code: 'ENOENT' })
  t.equal(
    readdirSync(join(folder, 'records')).length,
    2,
    'what may have been set is known to the next attempt',
  )
})

t.test('a hook that hangs or is told to stop ends with all that it has started', async (t) => {
  const folder = t.testdir({})
  const pidFile = join(folder, 'pid')
  const program = join(folder, 'hook.sh')
  writeFileSync(program, `#!/bin/sh\nsleep 600 &\necho $! > ${pidFile}\necho waiting\nwait\n`, {
    mode: 0o755,
  })
  const isAlive = (): boolean => {
    const [, state] = /^\d+ \(sleep\) (\w)/.exec(readText(`/proc/${readText(pidFile).trim()}/stat`)) ?? []
    return state !== undefined && state !== 'Z'
  }
  await t.rejects(new DnsHook(program, 300).call('add', 'a', 'b'), /did not end within 0.3 s: waiting/)
  await eventually('it is gone', () => !isAlive())
  const end = new AbortController()
  const hook = new DnsHook(program, 60_000, end.signal)
  rmSync(pidFile)
  const call = hook.call('add', 'a', 'b')
  await eventually('it runs', () => readText(pidFile) !== '' && isAlive())
  end.abort()
  await t.rejects(call, /this program stops: waiting/)
  await eventually('it is gone, too', () => !isAlive())
  await t.rejects(hook.call('remove', 'a', 'b'), /this program stops/)
  await t.rejects(new DnsHook(join(folder, 'none')).call('add', 'a', 'b'), /ENOENT/)
})

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

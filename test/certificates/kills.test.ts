/**
 * `sluice tls renew` is killed at random moments (KILLS of them, else 8): the certificate in use is the old or the new one, the
 * account stays, and the next attempt removes what was left. And a server or a hook that does not answer.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { pause, systemClock } from '../../src/actor/clock.js'
import { CurrentCertificates } from '../../src/certificates/current.js'
import { eventually } from '../eventually.js'
import { program, run, sluice } from '../flow/running.js'
import { random } from '../property.js'
import { startPebble, withoutPebble } from './pebble.js'

const kills = Number(process.env.KILLS ?? 4)
t.setTimeout(1_200_000 + kills * 20_000)

/** Whether a process of this machine has this path in its command. */
function runs(path: string): boolean {
  const commands = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return commands.some((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(path)
    } catch {
      // It has ended meanwhile.
      return false
    }
  })
}

t.test('kill -9 while a certificate is renewed', { skip: withoutPebble }, async (t) => {
  const pebble = await startPebble(t)
  const folder = t.testdir({})
  const tls = join(folder, 'tls')
  const hook = join(folder, 'hook.sh')
  const hookLog = join(folder, 'hook.log')
  writeFileSync(
    hook,
    `#!/bin/sh
set -e
echo "$*" >> '${hookLog}'
# All records of a name: the tests have one.
[ "$1" = add ] || exec curl -sf ${pebble.dnsApi}/clear-txt -d "{\\"host\\":\\"$2.\\"}"
exec curl -sf ${pebble.dnsApi}/set-txt -d "{\\"host\\":\\"$2.\\",\\"value\\":\\"$3\\"}"
`,
    { mode: 0o755 },
  )
  const environment = {
    DATA_PATH: folder,
    TLS_PORT: '0',
    TLS_ACME: 'true',
    TLS_ACME_NAMES: 'site.example',
    TLS_ACME_DIRECTORY_URL: pebble.directoryUrl,
    TLS_DNS_HOOK: hook,
    NODE_EXTRA_CA_CERTS: pebble.caFile,
  }
  const calls = (word: string): string[] =>
    existsSync(hookLog)
      ? readFileSync(hookLog, 'utf8')
          .split('\n')
          .flatMap((line) => (line.startsWith(word) ? [line.slice(word.length)] : []))
      : []
  const beganMs = systemClock.monotonic()
  t.match(await sluice(['tls', 'renew'], environment), { code: 0, out: /issued:/ })
  const tookMs = systemClock.monotonic() - beganMs
  const current = new CurrentCertificates({ issued: join(tls, 'issued') })
  const serialNow = (): string => {
    current.read(Date.now())
    t.same(current.refused, [], 'nothing that cannot be used is there')
    return current.pairs[0]?.cert ?? ''
  }
  const [account] = readdirSync(join(tls, 'accounts'))
  let serial = serialNow()
  let [replaced, cut] = [0, 0]
  for (let at = 0; at < kills; at += 1) {
    const child = spawn(process.execPath, [...program, 'tls', 'renew'], {
      env: { PATH: process.env.PATH ?? '', ...environment },
      stdio: 'ignore',
    })
    const exited = once(child, 'exit')
    // The first one never ends by itself, however much quicker than the one before it is.
    await Promise.race([pause(at === 0 ? 0 : random() * tookMs * 1.1), exited])
    child.kill('SIGKILL')
    const [code] = (await exited) as [number | null]
    cut += code === null ? 1 : 0
    const next = serialNow()
    t.not(next, '', 'there is one')
    replaced += next === serial ? 0 : 1
    serial = next
  }
  t.ok(cut > 0, `${cut} of ${kills} were cut off, ${replaced} had their certificate`)
  await eventually('no hook of a killed process is still at it', () => !runs(hook))
  const last = await sluice(['tls', 'renew'], environment)
  t.equal(last.code, 0, last.err)
  t.not(serialNow(), serial)
  t.same(readdirSync(join(tls, 'accounts')), [account], 'the same account, and no draft')
  t.same(readdirSync(join(tls, 'issued')), ['site.example.pem'])
  t.equal(statSync(join(tls, 'issued', 'site.example.pem')).mode & 0o777, 0o600)
  t.same(readdirSync(join(tls, 'records')), [], 'no record is open')
  const removed = new Set(calls('remove '))
  t.same(
    calls('add ').filter((record) => !removed.has(record)),
    [],
    'each record that was set was removed',
  )
})

t.test('a server that is gone, then one that never answers, and a hook that hangs', async (t) => {
  const folder = t.testdir({})
  const silent = createServer((socket) => socket.on('error', () => undefined))
  silent.listen(0, '127.0.0.1')
  await once(silent, 'listening')
  t.teardown(() => silent.close())
  const { port } = silent.address() as { port: number }
  const started = async (name: string, directoryUrl: string, more: Record<string, string> = {}) =>
    run(t, join(folder, name), {
      SERVICES: 'gateway',
      TLS_PORT: '0',
      TLS_ACME: 'true',
      TLS_ACME_NAMES: 'site.example',
      HTTP_REDIRECT_PORT: '0',
      TLS_ACME_DIRECTORY_URL: directoryUrl,
      ...more,
    })
  const stops = async (running: Awaited<ReturnType<typeof started>>, what: string): Promise<void> => {
    t.equal((await fetch(`${running.urls.gateway}/gateway/info`)).status, 200, `${what}: all else is served`)
    t.equal(await running.stop(), 0, `${what}: it stops`)
  }
  const gone = await started('gone', 'https://127.0.0.1:1/dir')
  await eventually('the failure is told', () =>
    gone.log.some(({ msg }) => /no certificate was issued/.test(String(msg))),
  )
  const metrics = await (await fetch(`${gone.urls.gateway}/gateway/__gateway_metrics`)).text()
  t.match(metrics, /tls_renewals_total\{[^}]*outcome="failed"[^}]*\} 1\n/)
  await stops(gone, 'gone')
  const mute = await started('mute', `https://127.0.0.1:${port}/dir`)
  await eventually('it asks', () => mute.log.some(({ msg }) => /getting a certificate/.test(String(msg))))
  await stops(mute, 'mute')
})

t.test('a program whose hook hangs stops, and ends it', { skip: withoutPebble }, async (t) => {
  const pebble = await startPebble(t)
  const folder = t.testdir({})
  const hook = join(folder, 'hook.sh')
  writeFileSync(hook, `#!/bin/sh\necho $$ > ${folder}/pid\nsleep 600\ntouch ${folder}/over\n`, {
    mode: 0o755,
  })
  const running = await run(t, join(folder, 'data'), {
    SERVICES: 'gateway',
    TLS_PORT: '0',
    TLS_ACME: 'true',
    TLS_ACME_NAMES: 'site.example',
    TLS_DNS_HOOK: hook,
    TLS_ACME_DIRECTORY_URL: pebble.directoryUrl,
    NODE_EXTRA_CA_CERTS: pebble.caFile,
  })
  const pidFile = join(folder, 'pid')
  await eventually('the hook hangs', () => existsSync(pidFile) && readFileSync(pidFile, 'utf8') !== '')
  t.equal(await running.stop(), 0)
  t.notOk(existsSync(join(folder, 'over')), 'the stop does not wait for it')
  t.notOk(existsSync(`/proc/${readFileSync(pidFile, 'utf8').trim()}`), 'it has ended')
})

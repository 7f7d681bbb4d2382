/**
 * `sluice deploy` and the services die at any moment: what is there at the end is one site, and it was paid once. Two
 * moments in the suite; `KILLS=50 node dist/test/flow/deploy-killed.test.js` takes fifty. A moment counts only where the deploy
 * had not ended.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { pause, systemClock } from '../../src/actor/clock.js'
import { signerOfEthereum } from '../../src/client/signer.js'
import { eventually } from '../eventually.js'
import { random } from '../property.js'
import { type Running, run, sluice } from './running.js'

const program = fileURLToPath(new URL('../../../bin/sluice.mjs', import.meta.url))
const kills = Number(process.env.KILLS ?? 2)

t.setTimeout(1_200_000 + kills * 60_000)

/** Nothing is free, so that a second charge would show in the balance. */
const settings = {
  DEVNET_SEED: 'false',
  DEVNET_BLOCK_MS: '0',
  UPLOAD_FREE_ITEM_BYTES: '0',
  UPLOAD_FREE_WALLET_BYTES: '0',
}

interface Deployed {
  readonly id: string
  readonly files: readonly { readonly path: string; readonly id: string }[]
}

interface Place {
  readonly folder: string
  readonly environment: Record<string, string>
  words(running: Running): string[]
}

function placeOf(folder: string): Place {
  const key = join(folder, 'key')
  return {
    folder,
    environment: { HOME: folder },
    words({ urls }) {
      const { upload = '', payment = '', gateway = '' } = urls
      const places = ['--upload', upload, '--payment', payment, '--gateway', gateway]
      return ['deploy', join(folder, 'site'), '--key', key, '--json', ...places]
    },
  }
}

async function balanceOf({ urls }: Running, address: string): Promise<bigint> {
  const answer = await fetch(`${urls.payment}/v1/account/balance/ethereum?address=${address}`)
  return BigInt(((await answer.json()) as { winc?: string }).winc ?? 0)
}

async function funded(running: Running, address: string): Promise<bigint> {
  const url = `${running.urls.payment}/v1/top-up/checkout-session/${address}/usd/1000`
  const { paymentSession } = (await (await fetch(url)).json()) as { paymentSession: { url: string } }
  const body = new URLSearchParams({ card: '4242424242424242' })
  await fetch(paymentSession.url, { method: 'POST', body, redirect: 'manual' })
  return eventually('the credits have come', async () => {
    const winc = await balanceOf(running, address)
    return winc > 0n && winc
  })
}

/**
 * Deploys, and after so many milliseconds kills the command, or the services under it and then the command. Undefined: that was
 * before it had ended. Otherwise it ended by itself after so many milliseconds.
 */
async function killed(
  place: Place,
  running: Running,
  afterMs: number,
  what: 'command' | 'services',
): Promise<number | undefined> {
  const startMs = systemClock.monotonic()
  const child = spawn(process.execPath, [program, ...place.words(running)], {
    env: { PATH: process.env.PATH ?? '', ...place.environment },
    stdio: 'ignore',
  })
  const exited = once(child, 'exit')
  await Promise.race([pause(afterMs), exited])
  const endedMs = child.exitCode === null ? undefined : systemClock.monotonic() - startMs
  if (what === 'services') await running.kill()
  child.kill('SIGKILL')
  await exited
  return endedMs
}

function start(t: Test, folder: string): Promise<Running> {
  return run(t, join(folder, 'data'), settings)
}

t.test('what is said before is what is charged', async (t) => {
  const folder = t.testdir({ key: '06'.repeat(32), site: {} })
  chmodSync(join(folder, 'key'), 0o600)
  const place = placeOf(folder)
  const { address } = await signerOfEthereum('06'.repeat(32))
  const running = await start(t, folder)
  for (let at = 0; at < 12; at++)
    writeFileSync(join(folder, 'site', `${at}.txt`), `file ${at}`.padEnd(2000 + 300 * at))
  const poor = await sluice(place.words(running), place.environment)
  t.equal(poor.code, 1)
  const page = new RegExp(
    `credits \\(\\$0\\.\\d+\\) are missing: [\\s\\S]*${running.urls.payment}/credits\\?address=${address}`,
  )
  t.match(JSON.parse(poor.out).error.message + JSON.parse(poor.out).error.advice, page)
  for (const bundle of [[], ['--bundle']]) {
    const before = await funded(running, address)
    if (bundle.length > 0)
      for (let at = 0; at < 12; at++) writeFileSync(join(folder, 'site', `${at}.txt`), `bundled ${at}`)
    const done = await sluice([...place.words(running), ...bundle], place.environment)
    t.equal(done.code, 0, done.err)
    const [, shown = ''] = /at most ([\d.]+) credits \(\$0\.\d+\)/.exec(done.err) ?? []
    const winc = BigInt(shown.replace('.', '').padEnd(shown.indexOf('.') + 12, '0'))
    t.ok(winc > 0n, done.err)
    t.equal(before - (await balanceOf(running, address)), winc, 'nothing is free, so the price is exact')
    t.equal(JSON.parse(done.out).winc, String(winc))
    const again = await sluice([...place.words(running), ...bundle], place.environment)
    t.match(again.err, /0 files to upload, 12 are there; 0 items, 0 bytes: free/)
  }
  await running.stop()
})

t.test('killed at any moment, a folder is one site that was paid once', async (t) => {
  const folder = t.testdir({ key: '05'.repeat(32), site: {} })
  chmodSync(join(folder, 'key'), 0o600)
  const place = placeOf(folder)
  const { address } = await signerOfEthereum('05'.repeat(32))
  let running = await start(t, folder)
  let before = await funded(running, address)
  let dead = 0
  /** How long a deploy takes that nobody kills: moments are drawn within it. */
  let wholeMs = 60_000
  // The first round only measures. Others may use this machine, too: a deploy that was faster than the last does not count.
  for (let round = 0; dead < kills && round <= 2 * kills + 1; round++) {
    mkdirSync(join(folder, 'site'), { recursive: true })
    for (let at = 0; at < 12; at++)
      writeFileSync(join(folder, 'site', `${at}.txt`), `round ${round}, file ${at}`.padEnd(2000 + 300 * at))
    const what = dead % 2 === 1 ? 'services' : 'command'
    const afterMs = round === 0 ? wholeMs : wholeMs * (0.1 + 0.85 * random())
    const endedMs = await killed(place, running, afterMs, what)
    if (endedMs === undefined) dead++
    else wholeMs = endedMs
    if (what === 'services') running = await start(t, folder)
    const done = await sluice(place.words(running), place.environment)
    t.equal(done.code, 0, done.err)
    const deployed = JSON.parse(done.out) as Deployed
    t.equal(deployed.files.length, 12)
    const prices = await Promise.all(deployed.files.map(({ id }) => chargedFor(running, id)))
    const manifest = await chargedFor(running, deployed.id)
    const cost = prices.reduce((sum, winc) => sum + winc, manifest)
    const now = await eventually('the upload is charged', async () => {
      const winc = await balanceOf(running, address)
      return winc === before - cost && winc
    })
    t.equal(before - now, cost, `round ${round}: one charge for each of 13 items`)
    const page = await fetch(`${running.urls.gateway}/${deployed.id}/7.txt`)
    t.match(await page.text(), new RegExp(`^round ${round}, file 7 `))
    const again = JSON.parse((await sluice(place.words(running), place.environment)).out) as Deployed
    t.equal(again.id, deployed.id, 'the same site')
    t.equal(await balanceOf(running, address), now, 'and nothing more is charged')
    before = now
  }
  t.equal(dead, kills, 'so many deploys were killed before they ended')
})

/** What the service charged for an item, as it says itself. */
async function chargedFor({ urls }: Running, id: string): Promise<bigint> {
  const { winc } = (await (await fetch(`${urls.upload}/v1/tx/${id}/status`)).json()) as { winc?: string }
  return BigInt(winc ?? 0)
}

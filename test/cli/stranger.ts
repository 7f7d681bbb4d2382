/** Somebody who has the installed program and nothing else deploys a folder to a service elsewhere. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { openBrowser, withoutBrowser } from '../browser.js'
import { eventually } from '../eventually.js'
import { scratch } from '../scratch.js'
import { elsewhere } from './elsewhere.js'

const nobody = 65_534

interface Printed {
  readonly code: number
  readonly out: string
  readonly err: string
}

export interface Stranger {
  /** Of the key that was made. */
  readonly address: string
  /** Settings with which the services are reached from there. */
  readonly settings: Readonly<Record<string, string>>
  /** Deploys a site that costs something, and opens it by the name `site`. */
  deploys(urls: Readonly<Record<string, string>>): Promise<void>
}

/** Makes a key there. `installed`: the folder with `node_modules/sluice`. */
export async function stranger(t: Test, installed: string): Promise<Stranger> {
  const home = scratch('stranger')
  const program = join(installed, 'node_modules/sluice/bin/sluice.mjs')
  for (const folder of [installed, home]) chmodSync(folder, 0o755)
  const { under, host, listenAddress, what } = elsewhere(t, [process.execPath, program, '--version'])
  t.comment(`the stranger has ${what}`)
  const run = async (words: readonly string[]): Promise<Printed> => {
    const [command = '', ...rest] = [...under, process.execPath, program, ...words]
    const env = { PATH: process.env.PATH ?? '', HOME: home, DATA_PATH: join(home, 'no-data') }
    const child = spawn(command, rest, { cwd: home, env, stdio: ['ignore', 'pipe', 'pipe'] })
    const printed = { out: '', err: '' }
    child.stdout.on('data', (text: Buffer) => (printed.out += text.toString()))
    child.stderr.on('data', (text: Buffer) => (printed.err += text.toString()))
    const [code] = (await once(child, 'close')) as [number]
    return { code, ...printed }
  }
  makeSite(home)
  if (under.includes('setpriv')) chownSync(home, nobody, nobody)
  const made = await run(['key', 'new'])
  t.equal(made.code, 0, made.err)
  const shown = await run(['key', 'show'])
  const [address = ''] = /\b(0x[0-9a-fA-F]{40}|[\w-]{43}|[1-9A-HJ-NP-Za-km-z]{43,44})\b/.exec(shown.out) ?? []
  t.not(address, '', shown.out + shown.err)
  const deploys: Stranger['deploys'] = async (urls) => {
    const at = (url = ''): string => `http://${host}:${new URL(url).port}`
    const places = ['--upload', at(urls.upload), '--payment', at(urls.payment), '--gateway', at(urls.gateway)]
    const poor = await run(['deploy', 'site', '--name', 'site', ...places])
    t.equal(poor.code, 1, 'nothing is uploaded that cannot be paid')
    t.match(poor.err, /are missing/)
    const session = await run(['top-up', '1000', 'usd', ...places])
    const [page = ''] = /http\S+checkout\S+/.exec(session.out) ?? []
    const local = page.replace(/\/\/[^/:]+/, `//${listenAddress}`)
    await fetch(local, {
      method: 'POST',
      body: new URLSearchParams({ card: '4242424242424242' }),
      redirect: 'manual',
    })
    const balance = async (): Promise<bigint> => {
      const url = `${at(urls.payment).replace(host, listenAddress)}/v1/account/balance?address=${address}`
      const { winc = '0' } = (await (await fetch(url)).json()) as { winc?: string }
      return BigInt(winc)
    }
    const before = await eventually('the credits have come', async () => (await balance()) > 0n && balance())
    const done = await run(['deploy', 'site', '--name', 'site', '--ttl', '0', '--json', ...places])
    t.equal(done.code, 0, done.err)
    const { named, winc, totalFiles } = JSON.parse(done.out) as Record<string, string>
    t.equal(Number(totalFiles), 3, 'without the hidden file')
    const [, printed = ''] = /at most ([\d.]+) credits/.exec(done.err) ?? []
    t.equal(
      BigInt(printed.replace('.', '').padEnd(printed.indexOf('.') + 12, '0')),
      BigInt(winc ?? 0),
      done.err,
    )
    t.equal(before - (await balance()), BigInt(winc ?? 0), 'what was said is what is charged')
    await opens(t, named ?? '', [`--host-resolver-rules=MAP *.${host} ${listenAddress}`])
  }
  return { address, settings: { LISTEN_ADDRESS: listenAddress, ARNS_ROOT_HOST: host }, deploys }
}

/** A page with a style and something large enough to cost something. */
function makeSite(home: string): void {
  const site = join(home, 'site')
  mkdirSync(site)
  const style = '<link rel="stylesheet" href="style.css">'
  writeFileSync(
    join(site, 'index.html'),
    `<!doctype html><title>A stranger's page</title>${style}<h1>Hello</h1>`,
  )
  writeFileSync(join(site, 'style.css'), 'h1 { color: rgb(1, 2, 3) }')
  writeFileSync(join(site, 'large.bin'), Buffer.alloc(300_000, 'large'))
  writeFileSync(join(site, '.env'), 'SECRET=1')
}

async function opens(t: Test, named: string, flags: readonly string[]): Promise<void> {
  if (withoutBrowser !== false) {
    t.comment(`${withoutBrowser}: the page is not opened`)
    return
  }
  const page = await (await openBrowser(t, flags)).newPage()
  // It is served some moments after its receipt.
  await eventually('the name is served', async () => (await page.goto(named))?.status() === 200)
  t.equal(await page.title(), "A stranger's page")
  t.equal(await page.evaluate("getComputedStyle(document.querySelector('h1')).color"), 'rgb(1, 2, 3)')
}

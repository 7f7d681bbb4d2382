import { spawnSync } from 'node:child_process'
import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { chromium } from 'playwright-core'
import { pause, systemClock } from '../../src/actor/clock.js'
import { selfSigned } from '../../src/certificates/self-signed.js'
import { tagOf } from '../../src/format/tag.js'
import { ed25519Signer, signItem } from '../../src/proof/sign.js'
import { type Child, freePort, plainEnvironment, start } from '../kit/child.js'
import { Dice } from '../kit/dice.js'
import { emptyFolder, sluiceWords } from '../kit/folders.js'
import { median, quantile } from '../kit/numbers.js'
import { say } from '../kit/say.js'
import { candidate } from '../rivals/candidate.js'
import { tlsFront } from '../rivals/nginx.js'

const help = `http2: how long Chromium takes for a page with many small files, by HTTP/1.1 over TLS, and by HTTP/2 of nginx

  --assets N   pictures, styles and scripts of the page, 1 to 20 KB (100)
  --ms N       that bytes take to the other side, in each direction (25)
  --rounds N   of one page load by each server, each in a new browser (15)

The network is a relay on this machine that delays bytes; a new connection is delayed by a round trip, too. It has no slow
start and no bound of bytes a second: on a real line one connection of HTTP/2 is slower at the beginning than here.
`

const chromiumPath = '/usr/bin/chromium'
const siteName = 'page'

/** A relay to a port that gives each byte on after `ms`. Resolves with its own port. */
async function relay(to: number, ms: number): Promise<{ readonly port: number; readonly server: Server }> {
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    const other = connect({ port: to, host: '127.0.0.1', allowHalfOpen: true, noDelay: true })
    // The handshake of TCP, which the system has done at once.
    const upFrom = systemClock.monotonic() + 2 * ms
    pass(socket, other, ms, upFrom)
    pass(other, socket, ms, 0)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  return { server, port: typeof address === 'object' && address !== null ? address.port : 0 }
}

function pass(from: Socket, to: Socket, ms: number, notBeforeMs: number): void {
  const later = (act: () => void): void => {
    const waitMs = Math.max(ms, notBeforeMs + ms - systemClock.monotonic())
    systemClock.after(waitMs, () => to.destroyed || act())
  }
  from.on('data', (piece) => later(() => to.write(piece)))
  from.on('end', () => later(() => to.end()))
  from.on('error', () => to.destroy())
}

interface Asset {
  readonly path: string
  readonly type: string
  readonly text: string
}

/** Files of a page: some 70 pictures, 15 styles and 15 scripts of a hundred. No two have the same bytes. */
function assetsOf(count: number): readonly Asset[] {
  const dice = new Dice(7)
  const filler = (bytes: number): string => dice.bytes(bytes).toString('hex').slice(0, bytes)
  return Array.from({ length: count }, (_, at) => {
    const text = filler(1000 + dice.below(19_000))
    const kind = at % 20
    if (kind < 14) {
      const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><desc>${text}</desc></svg>`
      return { path: `i${at}.svg`, type: 'image/svg+xml', text: svg }
    }
    if (kind < 17) return { path: `s${at}.css`, type: 'text/css', text: `.s${at}{color:red}/*${text}*/` }
    return { path: `s${at}.js`, type: 'text/javascript', text: `globalThis.s${at}=1;/*${text}*/` }
  })
}

function pageOf(assets: readonly Asset[]): string {
  const lines = assets.map(({ path, type }) => {
    if (type === 'text/css') return `<link rel="stylesheet" href="${path}">`
    return type === 'text/javascript' ? `<script defer src="${path}"></script>` : `<img src="${path}" alt="">`
  })
  return `<!doctype html><title>page</title>${lines.join('\n')}`
}

/** Uploads the page with a manifest, and gives it a name. */
async function publish(upload: string, folder: string, assets: readonly Asset[]): Promise<number> {
  const signer = ed25519Signer(Buffer.alloc(32, 5))
  const put = async (type: string, text: string): Promise<string> => {
    const body = signItem(signer, { tags: [tagOf('Content-Type', type)] }, Buffer.from(text))
    const headers = { 'content-type': 'application/octet-stream' }
    const answer = await fetch(`${upload}/tx`, { method: 'POST', body, headers })
    if (answer.status !== 200) throw new Error(`an upload was answered ${answer.status}`)
    return ((await answer.json()) as { id: string }).id
  }
  const paths: Record<string, { id: string }> = {
    'index.html': { id: await put('text/html', pageOf(assets)) },
  }
  for (const { path, type, text } of assets) paths[path] = { id: await put(type, text) }
  const manifest = { manifest: 'arweave/paths', version: '0.2.0', index: { path: 'index.html' }, paths }
  const id = await put('application/x.arweave-manifest+json', JSON.stringify(manifest))
  const words = [...sluiceWords, 'names', 'set', siteName, id]
  const { status } = spawnSync(process.execPath, words, { env: { ...plainEnvironment, DATA_PATH: folder } })
  if (status !== 0) throw new Error('the name was not set')
  return assets.reduce((sum, { text }) => sum + text.length, 0)
}

/** A page load in a browser that was just started: milliseconds until its `load` event, and by which protocol its files came. */
async function load(
  port: number,
  assets: number,
): Promise<{ readonly ms: number; readonly protocol: string }> {
  const browser = await chromium.launch({
    executablePath: chromiumPath,
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--ignore-certificate-errors'],
  })
  try {
    const tab = await browser.newPage()
    await tab.goto(`https://${siteName}.localhost:${port}/`, { waitUntil: 'load' })
    const found = (await tab.evaluate(`(() => {
      const files = performance.getEntriesByType('resource').filter(({ responseStatus }) => responseStatus === 200)
      const [page] = performance.getEntriesByType('navigation')
      return { ms: page.loadEventStart, count: files.length, protocol: files[0]?.nextHopProtocol ?? 'none' }
    })()`)) as { ms: number; count: number; protocol: string }
    if (found.count < assets) throw new Error(`${found.count} of ${assets} files were loaded`)
    return found
  } finally {
    await browser.close()
  }
}

async function measure(count: number, ms: number, rounds: number): Promise<void> {
  if (!existsSync(chromiumPath)) return say('no Chromium here')
  const folder = emptyFolder('http2')
  const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
  const made = await selfSigned(['localhost', '*.localhost'], systemClock.now(), 30)
  writeFileSync(cert, made.cert)
  writeFileSync(key, made.key, { mode: 0o600 })
  const [plain, secure, upload] = [await freePort(), await freePort(), await freePort()]
  const data = join(folder, 'data')
  const program = await start(process.execPath, [...sluiceWords, 'start'], {
    shape: /"msg":"ready"/,
    env: {
      DATA_PATH: data,
      PORT: String(plain),
      TLS_PORT: String(secure),
      UPLOAD_PORT: String(upload),
      DEVNET_PORT: '0',
      DEVNET_SEED: 'false',
      CONSOLE_ENABLED: 'false',
      TLS_CERT_FILE: cert,
      TLS_KEY_FILE: key,
      UPLOAD_FREE_WALLET_BYTES: '1000000000',
    },
  })
  const running: Child[] = [program]
  try {
    const assets = assetsOf(count)
    const bytes = await publish(`http://127.0.0.1:${upload}`, data, assets)
    await pause(2000)
    const behind = candidate('sluice', 'ours', plain, program)
    const [one, two] = [
      await tlsFront({ cert, key }, behind, plain, 2),
      await tlsFront({ cert, key, http2: true }, behind, plain, 2),
    ]
    running.push(one, two)
    const servers = { 'ours, HTTP/1.1': secure, 'nginx, HTTP/1.1': one.port, 'nginx, HTTP/2': two.port }
    const through = await Promise.all(
      Object.entries(servers).map(async ([name, port]) => ({
        name,
        ...(await relay(port, ms)),
        times: [] as number[],
      })),
    )
    say(
      `${count} files, ${(bytes / 1e6).toFixed(2)} MB; ${2 * ms} ms for a round trip; ms until the load event`,
    )
    for (let round = 0; round < rounds + 1; round += 1)
      for (const { name, port, times } of through) {
        const { ms: took, protocol } = await load(port, count)
        if (round === 0) say(`  ${name}: ${protocol}`)
        else times.push(took)
      }
    for (const { name, times, server } of through) {
      const [low, middle, high] = [quantile(times, 0.25), median(times), quantile(times, 0.75)].map(
        Math.round,
      )
      say(`${name}: ${middle} (quartiles ${low} to ${high})`)
      server.close()
    }
  } finally {
    await Promise.allSettled(running.map((one) => one.stop()))
    rmSync(folder, { recursive: true, force: true })
  }
}

const { values } = parseArgs({
  options: {
    help: { type: 'boolean' },
    assets: { type: 'string' },
    ms: { type: 'string' },
    rounds: { type: 'string' },
  },
})
if (values.help === true) say(help)
else await measure(Number(values.assets ?? 100), Number(values.ms ?? 25), Number(values.rounds ?? 15))

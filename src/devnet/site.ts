import { createCipheriv } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { crc32, deflateSync } from 'node:zlib'
import { iconAddress } from '../http/page.js'
import { palette } from '../http/palette.js'

/** One file of the seeded site. */
export interface SitePage {
  readonly path: string
  readonly contentType: string
  readonly bytes: Uint8Array
}

/** Sixteen chunks: each takes its way through the node and the gateway at the first start. */
export const largeSizeBytes = 4 * 1024 * 1024

/** The small site that a fresh devnet carries. The same bytes at every start. */
export function sitePages(): SitePage[] {
  const text = (path: string, contentType: string, body: string): SitePage => ({
    path,
    contentType,
    bytes: Buffer.from(body, 'utf8'),
  })
  return [
    text('index.html', 'text/html; charset=utf-8', page),
    text('style.css', 'text/css; charset=utf-8', style),
    text('404.html', 'text/html; charset=utf-8', missing),
    { path: 'image.png', contentType: 'image/png', bytes: picture(640, 400) },
    demo('verify.html', 'text/html; charset=utf-8'),
    demo('verify.js', 'text/javascript; charset=utf-8'),
    demo('verify-worker.js', 'text/javascript; charset=utf-8'),
  ]
}

/** A page that fetches from lying gateways by the client's library; `bin/build.mjs` assembles it. */
function demo(path: string, contentType: string): SitePage {
  return { path, contentType, bytes: readFileSync(new URL(`../../demo/${path}`, import.meta.url)) }
}

/** 4 MB that cannot be compressed, the same at every start. */
export function largeFile(): Uint8Array {
  const cipher = createCipheriv('aes-128-ctr', Buffer.alloc(16, 'sluice'), Buffer.alloc(16))
  return cipher.update(Buffer.alloc(largeSizeBytes))
}

const head = (title: string, root = ''): string => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<link rel="icon" href="${iconAddress}">
<link rel="stylesheet" href="${root}style.css">
`

const page = `${head('Sluice devnet')}<main>
  <h1>It flows.</h1>
  <p class="lead">This page is a file of a path manifest on the embedded chain of this machine. Your gateway found it by its id,
  proved it against the chain, and signed the answer.</p>
  <img src="image.png" alt="Water at dusk" width="320" height="200">
  <ul>
    <li><a href="large.bin"><b>A file of 4 MB</b>fit for range requests</a></li>
    <li><a href="verify.html"><b>Gateways that lie</b>caught by the client's library</a></li>
    <li><a href="missing"><b>A path that is not there</b>answered by the manifest's fallback</a></li>
  </ul>
</main>
</html>
`

const missing = `${head('Not here', '/')}<main>
  <h1>Not here.</h1>
  <p class="lead">The manifest of this site has no such path. This page is its fallback.</p>
  <p><a href="/">Back to the site</a></p>
</main>
</html>
`

const style = `${palette}* { box-sizing: border-box }
:root { font: 17px/1.55 system-ui, sans-serif }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; background: var(--page); color: var(--ink) }
main { width: 100%; max-width: 44rem; padding: 2.5rem 1.25rem }
h1 { margin: 0 0 .5rem; font-size: clamp(2.25rem, 8vw, 3.5rem); line-height: 1.1; letter-spacing: -.02em }
.lead { margin: 0 0 1.5rem; color: var(--quiet); font-size: 1.1rem }
a { color: var(--accent) }
img { display: block; width: 100%; height: auto; border-radius: .75rem }
ul { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(13rem, 100%), 1fr)); gap: .75rem; margin: 1.25rem 0 0; \
padding: 0; list-style: none }
li a { display: block; height: 100%; padding: .875rem 1rem; color: var(--quiet); background: var(--card); font-size: .9rem; \
text-decoration: none; border: 1px solid var(--line); border-radius: .5rem }
li b { display: block; color: var(--accent); font-weight: 600; font-size: 1rem }
li a:hover { border-color: var(--accent) }
`

/** A PNG (ISO/IEC 15948): a landscape in true colour. */
function picture(width: number, height: number): Uint8Array {
  const rows = Buffer.alloc(height * (1 + width * 3))
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      const at = y * (1 + width * 3) + 1 + x * 3
      const shore = height * 0.55
      const ripple = y < shore ? 0 : Math.sin((x + y * y * 0.05) / 5) * 18
      const depth = y < shore ? y / shore : 1 - (y - shore) / (height - shore)
      rows[at] = 40 + 190 * depth + ripple
      rows[at + 1] = 60 + 90 * depth + ripple
      rows[at + 2] = 120 + 40 * (1 - depth) + ripple
    }
  }
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  header.set([8, 2, 0, 0, 0], 8)
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
  return Buffer.concat([
    signature,
    chunk('IHDR', header),
    chunk('IDAT', deflateSync(rows)),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

function chunk(type: string, body: Uint8Array): Uint8Array {
  const named = Buffer.concat([Buffer.from(type, 'latin1'), body])
  const frame = Buffer.alloc(8)
  frame.writeUInt32BE(body.length, 0)
  frame.writeUInt32BE(crc32(named), 4)
  return Buffer.concat([frame.subarray(0, 4), named, frame.subarray(4)])
}

// Shows what a page sees of gateways that lie: by plain fetch, and by verifiedFetch; then an image through the service worker.
import { ProvingFetcher } from '../fetch/index.js'

/** What each kind of liar does, in the order of the page; the devnet's server of liars has them below these names. */
const kinds = {
  flips: 'changes one byte',
  swaps: 'gives another item, with all of its true headers',
  shifts: 'gives another part than was requested',
  delays: 'gives old content under a name',
}
/** How long a browser may take to give a page to its new worker. */
const claimMs = 20_000

const { protocol, host } = location
// The page is served under a name: behind it is the gateway itself, which browsers reach by two addresses.
const [name, ...rest] = host.split('.')
const truth = `${protocol}//${rest.join('.')}`
const second = truth.replace('//localhost', '//127.0.0.1')

const rows = document.querySelector('tbody')
const say = (where, text) => {
  where.textContent = text
}

/** The address of the server of liars: another one at each start, so that no stored answer is good. */
async function liarsUrl() {
  const response = await fetch(`${truth}/gateway/info`, { cache: 'no-store' })
  const { devnet } = await response.json()
  if (devnet?.liars === undefined)
    throw new Error('No gateways that lie run beside this one: they belong to the devnet of `sluice start`.')
  return devnet.liars
}

async function idOf(path) {
  const { headers } = await fetch(path, { method: 'HEAD' })
  return headers.get('x-gateway-data-id') ?? headers.get('x-ar-io-data-id') ?? ''
}

async function digest(bytes) {
  const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes))
  return Array.from(hash.subarray(0, 4), (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** One liar: what plain fetch believes, and what the proof says. */
async function show(kind, ids, liars) {
  const row = rows.insertRow()
  row.id = kind
  const cells = [0, 1, 2].map(() => row.insertCell())
  cells[0].textContent = kinds[kind]
  const liar = `${liars}/${kind}`
  const range = kind === 'shifts' ? { start: 300_000, end: 300_999 } : undefined
  const id = kind === 'shifts' ? ids.large : ids.image
  const headers = range === undefined ? {} : { range: `bytes=${range.start}-${range.end}` }
  const path = kind === 'delays' ? `/gateway/resolver/${name}` : `/raw/${id}`
  const plain = await fetch(liar + path, { headers })
  const bytes = await plain.arrayBuffer()
  say(cells[1], `${plain.status}, ${bytes.byteLength} bytes, ${await digest(bytes)}: no way to tell`)
  const found = []
  const honest = kind === 'delays' ? [truth, second] : [truth]
  const fetcher = new ProvingFetcher({
    gatewayUrls: [liar, ...honest],
    onFinding: ({ gateway, error }) => found.push({ gateway, code: error.code, message: error.message }),
  })
  const reference = kind === 'delays' ? `ar://${name}/image.png` : id
  const response = await fetcher.fetch(reference, { range })
  const right = await response.arrayBuffer()
  const lied = found.find(({ gateway, code }) => gateway === liar && code === 'untrue')
  row.className = lied === undefined ? 'missed' : 'caught'
  cells[2].append(document.createElement('strong'), document.createElement('span'))
  say(cells[2].firstChild, lied === undefined ? 'Not caught.' : 'Caught:')
  const reason = lied?.message.replace(`${liar}: `, '') ?? ''
  say(
    cells[2].lastChild,
    ` ${reason}. From another gateway: ${right.byteLength} bytes, ${await digest(right)}`,
  )
}

/** Resolves when the worker answers for this page; rejects where that does not come to pass, as after a forced reload. */
function taken() {
  const { serviceWorker } = navigator
  return new Promise((resolve, reject) => {
    const late = () => reject(new Error('The worker does not answer for this page. Load the page again.'))
    const timer = setTimeout(late, claimMs)
    const look = () => {
      if (serviceWorker.controller === null) return
      clearTimeout(timer)
      resolve()
    }
    serviceWorker.addEventListener('controllerchange', look, { once: true })
    look()
  })
}

async function throughWorker(ids, liars) {
  const status = document.querySelector('#worker')
  if (navigator.serviceWorker === undefined) return say(status, 'This browser has no service workers here.')
  const list = document.querySelector('#told')
  navigator.serviceWorker.addEventListener('message', ({ data }) => {
    if (data.sluice !== 'untrue' && data.sluice !== 'refused') return
    list.append(Object.assign(document.createElement('li'), { textContent: data.message }))
  })
  const gateways = [`${liars}/flips`, `${liars}/swaps`, truth]
  const query = new URLSearchParams({ gateways: gateways.join(',') })
  await navigator.serviceWorker.register(`verify-worker.js?${query}`)
  await taken()
  const image = document.querySelector('#image')
  image.src = ids.image
  await image.decode()
  say(status, 'Two gateways that lie come first, then one that does not: the picture is right.')
  image.hidden = false
}

try {
  const liars = await liarsUrl()
  say(document.querySelector('#liars'), `They listen at ${liars}.`)
  const [image, large] = await Promise.all(['image.png', 'large.bin'].map(idOf))
  for (const kind of Object.keys(kinds)) await show(kind, { image, large }, liars)
  await throughWorker({ image }, liars)
  document.body.dataset.done = 'yes'
} catch (error) {
  say(document.querySelector('#worker'), String(error))
  document.body.dataset.done = 'failed'
  throw error
}

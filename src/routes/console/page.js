import { creditsPart } from './credits.js'
import { showHistory } from './history.js'
import { live } from './live.js'
import { showLog } from './log.js'
import { machines } from './machines.js'
import { bytes, number, parseMetrics, points, rate, span, sum } from './metrics.js'
import { list } from './moderation.js'
import './lookup.js'
import { ask, byId, isIn, onOut, prefix, signIn, signOut } from './session.js'
import { uploads } from './uploads.js'
import { cell, element, fill, table } from './view.js'

const everyMs = 2000
/** Readings of five minutes. */
const most = 150

let before
let beforeMs = 0
let timer
let isPaused = false
let lastMs = 0
const history = new Map()

onOut((message) => {
  clearTimeout(timer)
  byId('console').hidden = true
  byId('login').hidden = false
  byId('login-said').textContent = message
  byId('login-said').className = 'said bad'
  byId('key').value = ''
  byId('key').focus()
})

byId('login-form').addEventListener('submit', async (event) => {
  event.preventDefault()
  try {
    await signIn(byId('key').value.trim())
    open()
  } catch (error) {
    byId('login-said').textContent = error.message
  }
})
byId('sign-out').addEventListener('click', () => signOut())
byId('pause').addEventListener('click', () => {
  isPaused = !isPaused
  byId('pause').setAttribute('aria-pressed', String(isPaused))
  byId('pause').textContent = isPaused ? 'Go on' : 'Pause'
  void look()
})
document.addEventListener('visibilitychange', () => void look())

function open() {
  byId('login').hidden = true
  byId('console').hidden = false
  byId('key').value = ''
  void look()
  void list()
  void showHistory()
  void showLog()
  void machines.look()
  void uploads.look()
  void creditsPart.look()
}

/** Reads everything that changes by itself, and again after a while, unless the tab is hidden. */
async function look() {
  clearTimeout(timer)
  if (!isIn() || document.hidden || isPaused) return
  try {
    const [overview, text] = await Promise.all([
      ask('overview'),
      fetch(`${prefix}/__gateway_metrics`, { cache: 'no-store' }).then((answer) => answer.text()),
    ])
    show(overview, parseMetrics(text))
    lastMs = performance.now()
  } catch (error) {
    if (!isIn()) return
    const since = lastMs === 0 ? '' : `, for ${span((performance.now() - lastMs) / 1000)}`
    judge('bad', `The gateway does not answer${since}`, [error.message, 'The numbers below are old.'])
  }
  clearTimeout(timer)
  if (isIn() && !isPaused) timer = setTimeout(() => void look(), everyMs)
}

function show(overview, series) {
  const now = performance.now()
  const seconds = (now - beforeMs) / 1000
  const per = (name, part) => rate(before, series, seconds, name, part)
  const { info, health, moderation, services } = overview
  machines.follow(overview.hasCluster ? 'running' : undefined)
  uploads.follow(services.upload)
  creditsPart.follow(services.payment)
  byId('who').textContent = `${info.release}, ${info.network}, up ${span(health.uptime)}`
  byId('fresh').textContent = `as of ${new Date(overview.now).toLocaleTimeString()}`
  byId('moderation-counts').textContent = [
    counted(moderation.id, 'id'),
    counted(moderation.hash, 'hash', 'hashes'),
    counted(moderation.name, 'name'),
  ].join(', ')
  const requests = per('http_requests_total')
  const failed = per('http_requests_total', 'status="5xx"')
  tiles(overview, series, { per, requests, failed })
  const limited = per('rate_limit_exceeded_total')
  verdict(overview, { requests, failed, limited, cut: per('get_data_stream_errors_total') })
  live(before, series, seconds)
  resources(overview.resources)
  refused(overview.limited, info.rateLimiter)
  payments(info, series, overview.payments)
  before = series
  beforeMs = now
}

function tiles({ info, memory, cache }, series, { per, requests, failed }) {
  const hits = per('contiguous_data_cache_hit_total')
  const misses = per('contiguous_data_cache_miss_total')
  const share = hits + misses === 0 ? undefined : (100 * hits) / (hits + misses)
  const { index } = info
  const names = per('arns_cache_hit_total') + per('arns_cache_miss_total')
  const wrong = per('http_requests_total', 'status="4xx"')
  const shown = [
    tile('Requests', requests, `${number(requests)} /s`, `${sum(series, 'flows_in_flight')} under way`),
    tile(
      'Sent',
      per('get_data_stream_bytes_total'),
      `${bytes(per('get_data_stream_bytes_total'))}/s`,
      'content',
    ),
    tile('Failed', failed, `${number(failed)} /s`, `${number(wrong)} /s client faults`),
    tile(
      'From the cache',
      share ?? 0,
      share === undefined ? 'quiet' : `${share.toFixed(0)} %`,
      `${number(misses)} misses /s`,
    ),
    tile('Memory', memory.residentBytes, bytes(memory.residentBytes), 'mapped files included'),
    tile(
      'Content on disk',
      cache.bytes,
      bytes(cache.bytes),
      `of ${bytes(cache.maxBytes)}, ${number(cache.blobs)} files`,
    ),
    ...storeTile(series, per),
    tile(
      'Height',
      index.lag ?? 0,
      number(info.height ?? 0),
      `${index.state}, ${number(index.lag ?? 0)} behind`,
    ),
    tile(
      'Names',
      names,
      `${number(names)} /s`,
      `${number(per('arns_cache_miss_total'))} /s requested from resolvers`,
    ),
  ]
  fill(byId('tiles'), shown)
}

/** The object store below the disk, where there is one: one of its states is 1. */
function storeTile(series, per) {
  const state = (series.get('content_store_state') ?? []).find(({ value }) => value > 0)
  if (state === undefined) return []
  const word = /state="([^"]*)"/.exec(state.labels)?.[1] ?? ''
  const reads = per('content_store_reads_total')
  const under = `${number(sum(series, 'content_store_waiting'))} wait, ${number(reads)} looked for /s`
  return [tile('Object store', reads, word, under)]
}

function tile(title, value, text, under) {
  const values = history.get(title) ?? []
  values.push(value)
  if (values.length > most) values.shift()
  history.set(title, values)
  const line = document.createElementNS('http://www.w3.org/2000/svg', 'svg')
  line.setAttribute('viewBox', '0 0 100 30')
  line.setAttribute('preserveAspectRatio', 'none')
  line.setAttribute('aria-hidden', 'true')
  const path = document.createElementNS('http://www.w3.org/2000/svg', 'polyline')
  path.setAttribute('points', points(values))
  line.append(path)
  return element('div', { class: 'tile' }, [
    element('h3', {}, title),
    element('p', {}, text),
    element('p', { class: 'under', title: under }, under),
    line,
  ])
}

/** The first line of the page: whether everything works, and if not, what is wrong. */
function verdict({ health, info, cache }, { requests, failed, limited, cut }) {
  const bad = [...(health.reasons ?? [])]
  const worth = []
  if (requests > 0 && failed / requests > 0.05)
    bad.push(`${((100 * failed) / requests).toFixed(0)} % of the answers are failures of ours (5xx)`)
  else if (failed > 0) worth.push(`${number(failed)} answers each second are failures of ours (5xx)`)
  worth.push(...(health.warnings ?? []))
  if (cut > 0) worth.push(`${number(cut)} bodies each second are cut short because a source fails`)
  if ((info.index.lag ?? 0) > 10)
    worth.push(
      `the index is ${number(info.index.lag)} blocks behind${info.index.etaSeconds ? `, about ${span(info.index.etaSeconds)}` : ''}`,
    )
  if (info.index.missingTransactions > 0)
    worth.push(`${number(info.index.missingTransactions)} transactions of indexed blocks are missing`)
  if (cache.bytes > cache.maxBytes * 1.05) worth.push('content on disk is over its bound')
  if (limited > 1) worth.push(`${number(limited)} requests each second are refused by a limit`)
  if (bad.length > 0) judge('bad', 'Not well', [...bad, ...worth])
  else if (worth.length > 0) judge('warn', 'Serving, worth a look', worth)
  else judge('good', 'All is well', [])
}

function judge(kind, word, reasons) {
  const place = byId('verdict')
  const text = [word, ...reasons].join('\n')
  // Changed only when the text does, because screen readers read each change aloud.
  if (place.dataset.text === text) return
  place.dataset.text = text
  place.className = `verdict ${kind}`
  const list = element(
    'ul',
    {},
    reasons.map((reason) => element('li', {}, reason)),
  )
  fill(place, [element('span', {}, word), ...(reasons.length === 0 ? [] : [list])])
}

function resources(found) {
  const rows = found.map(({ text, count, amount }) => [
    cell(text, 'mono'),
    cell(number(count), 'number'),
    cell(bytes(amount), 'number'),
  ])
  fill(byId('resources'), [table(['Path', 'Requests', 'Sent'], rows, 'Nothing was requested.')])
}

function refused(found, limiter) {
  const rows = found.map(({ text, count, lastMs: ms }) => [
    cell(text, 'mono'),
    cell(number(count), 'number'),
    cell(new Date(ms).toLocaleTimeString(), 'number'),
  ])
  const none =
    limiter === undefined ? 'The rate limiter is off (ENABLE_RATE_LIMITER).' : 'Nobody was refused.'
  fill(byId('limited'), [table(['Address', 'Refused', 'Last'], rows, none)])
}

function counted(count, one, many = `${one}s`) {
  return `${number(count)} ${count === 1 ? one : many}`
}

/** Beginning and end of a long id; the whole as a tooltip. */
function short(text) {
  const shown = text.length < 16 ? text : `${text.slice(0, 8)}…${text.slice(-6)}`
  return [element('span', { title: text }, shown)]
}

function payments({ rateLimiter, x402 }, series, recent = []) {
  const facts = []
  if (rateLimiter !== undefined) {
    const { ip, resource } = rateLimiter.dataEgress.buckets
    facts.push(['Each address', `${number(ip.capacity)} KiB, then ${number(ip.refillRate)} KiB/s`])
    facts.push([
      'Each resource',
      `${number(resource.capacity)} KiB, then ${number(resource.refillRate)} KiB/s`,
    ])
    facts.push([
      'Free tokens taken',
      number(sum(series, 'rate_limit_tokens_consumed_total', 'bucket_type="ip",token_type="regular"')),
    ])
    facts.push([
      'Paid tokens taken',
      number(sum(series, 'rate_limit_tokens_consumed_total', 'bucket_type="ip",token_type="paid"')),
    ])
    facts.push(['Refused', number(sum(series, 'rate_limit_exceeded_total'))])
  } else facts.push(['Limits', 'off'])
  if (x402 === undefined) facts.push(['Payments', 'off'])
  else {
    facts.push(
      ['Network', x402.network],
      ['Wallet', x402.walletAddress],
      ['Facilitator', x402.facilitatorUrl],
    )
    const { pricing } = x402.dataEgress
    facts.push([
      'Price',
      `${pricing.perBytePrice} ${pricing.currency} a byte, ${pricing.minPrice} to ${pricing.maxPrice}`,
    ])
    facts.push(['Offers made', number(sum(series, 'x402_offers_total'))])
    const outcomes = ['settled', 'refused', 'malformed', 'pending', 'down'].flatMap((outcome) => {
      const count = sum(series, 'x402_payments_total', `outcome="${outcome}"`)
      return count > 0 ? [`${number(count)} ${outcome}`] : []
    })
    if (outcomes.length > 0) facts.push(['Payments', outcomes.join(', ')])
  }
  const pairs = facts.flatMap(([name, value]) => [
    element('dt', {}, name),
    element('dd', name === 'Wallet' ? { class: 'mono' } : {}, value),
  ])
  const rows = recent.map(({ askedMs, state, doubtful, units, payer, resource, transaction }) => [
    cell(new Date(askedMs).toLocaleString(), 'number'),
    cell(doubtful ? 'doubtful' : state),
    cell((Number(units) / 1e6).toFixed(6), 'number'),
    cell(short(payer), 'mono'),
    cell(short(transaction ?? ''), 'mono'),
    cell([element('span', { title: resource }, new URL(resource).pathname)], 'mono'),
  ])
  const heads = ['Time', 'State', 'USDC', 'Payer', 'Transaction', 'For']
  const list = x402 === undefined ? [] : [table(heads, rows, 'Nobody has paid yet.', 'payments')]
  fill(byId('payments'), [element('dl', {}, pairs), ...list])
}

if (isIn()) open()
else signOut()

import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import type { Test } from 'tap'
import { pause } from '../src/actor/clock.js'

/**
 * A phone, a tablet, a desk. Colours are looked at in the widest: no page shows more in a narrower one, and what sticks out does
 * so in both colour schemes.
 */
const looked = [
  { colorScheme: 'light', width: 375 },
  { colorScheme: 'light', width: 768 },
  { colorScheme: 'light', width: 1200 },
  { colorScheme: 'dark', width: 1200 },
] as const

const faultsIn = readFileSync(new URL('../../test/page-faults.js', import.meta.url), 'utf8')

/** A page in one of its states. */
export interface Look {
  /** Of the picture, which is kept in the folder SCREENSHOTS where that is set. */
  readonly name: string
  /** Brings it up. */
  open(page: Page): Promise<unknown>
  /** Words that must be there. */
  readonly words?: string | RegExp
  /** Statuses that the browser reports as errors although they are what the page is about. */
  readonly statuses?: readonly number[]
}

/**
 * Opens each page once, shows it in three widths and two colour schemes, and compares what the browser complains of, what sticks
 * out or is cut off, and what cannot be read with nothing. All are opened in one tab: a new one costs Chromium a new process.
 */
export async function lookAt(t: Test, browser: Browser | undefined, looks: readonly Look[]): Promise<void> {
  if (browser === undefined) throw new Error('no browser here')
  const context = await browser.newContext()
  const page = await context.newPage()
  for (const look of looks) {
    await show(page, looked[0])
    await lookOnce(t, page, look)
    page.removeAllListeners()
  }
  await context.close()
}

async function show(page: Page, { colorScheme, width }: (typeof looked)[number]): Promise<void> {
  await page.emulateMedia({ colorScheme })
  await page.setViewportSize({ width, height: 900 })
}

/** What the browser complains of, as it happens. */
function complaints(page: Page, statuses: readonly number[]): string[] {
  const errors: string[] = []
  page.on('pageerror', (error) => errors.push(error.message))
  page.on('requestfailed', (request) => {
    const why = request.failure()?.errorText ?? ''
    // A page may end its own requests, as that of the lying gateways does.
    if (why !== 'net::ERR_ABORTED') errors.push(`${request.url()}: ${why}`)
  })
  page.on('console', (message) => {
    const isExpected = statuses.some((status) => message.text().includes(`status of ${status}`))
    if (/error|warning/.test(message.type()) && !isExpected) errors.push(message.text())
  })
  return errors
}

/** Faults that are there still when the page has had time to fit its new width: charts are drawn anew. */
async function lastingFaults(page: Page): Promise<string[]> {
  let faults = await page.evaluate<string[]>(faultsIn)
  for (let tries = 0; tries < 20 && faults.length > 0; tries += 1) {
    await pause(100)
    faults = await page.evaluate<string[]>(faultsIn)
  }
  return faults
}

async function lookOnce(t: Test, page: Page, look: Look): Promise<void> {
  const { name, words = /\S/, statuses = [] } = look
  const errors = complaints(page, statuses)
  try {
    await look.open(page)
  } catch (error) {
    t.fail(`${name} does not come up: ${error}`)
  }
  t.match((await page.textContent('body')) ?? '', words, name)
  const folder = process.env.SCREENSHOTS
  if (folder !== undefined) mkdirSync(folder, { recursive: true })
  for (const kind of looked) {
    const how = `${name} ${kind.colorScheme}-${kind.width}`
    await show(page, kind)
    if (folder !== undefined)
      await page.screenshot({ path: join(folder, `${how.replace(' ', '-')}.png`), fullPage: true })
    t.strictSame(await lastingFaults(page), [], `${how}: all of it can be seen and read`)
  }
  t.strictSame(errors, [], `${name}: nothing that the browser complains of`)
}

import { existsSync } from 'node:fs'
import { type Browser, chromium } from 'playwright-core'
import type { Test } from 'tap'

const executablePath = '/usr/bin/chromium'

/** It asks nobody but the pages that a test opens. */
const flags = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-sync',
  '--disable-background-networking',
  '--disable-component-update',
]

/** Why a test in a browser cannot run here, or false. */
export const withoutBrowser = existsSync(executablePath) ? false : 'no Chromium here'

/** Starts Chromium, closed at the test's end. */
export async function openBrowser(t: Test, more: readonly string[] = []): Promise<Browser> {
  const browser = await chromium.launch({ executablePath, args: [...flags, ...more] })
  t.teardown(() => browser.close())
  return browser
}

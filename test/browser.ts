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

/** For what never comes, not for what is slow: Chromium's processes share the machine with many others. */
const patienceMs = 200_000

/** Starts Chromium, closed at the test's end. Its pages wait for long. */
export async function openBrowser(t: Test, more: readonly string[] = []): Promise<Browser> {
  const browser = await chromium.launch({ executablePath, args: [...flags, ...more], timeout: patienceMs })
  browser.on('context', (context) => context.setDefaultTimeout(patienceMs))
  t.teardown(() => browser.close())
  return browser
}

mod budget;
mod budget_script;
mod diff;
mod html_page;
mod report;

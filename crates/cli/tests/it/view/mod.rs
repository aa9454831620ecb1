mod agrees;
mod in_a_browser;
mod limits;
mod serve;
